package view

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// transcript is what a trial left of its sessions. Keys that are not known are
// passed over, missing ones are empty: a transcript of another version is shown
// as far as it goes.
type transcript struct {
	Error    string `json:"error"`
	Sessions []struct {
		Messages []message `json:"messages"`
		Segments []segment `json:"segments"`
		Recalled []recall  `json:"recalled"`
		Actions  []struct {
			Tool   string `json:"tool"`
			Vetoed bool   `json:"vetoed"`
		} `json:"actions"`
	} `json:"sessions"`
	Decisions []moment `json:"decisions"`
	Memory    struct {
		Before, Between, After []Record
	} `json:"memory"`
	Judge []Verdict `json:"judge"`
}

// Verdict is what a judge that is a language model answered to one question.
type Verdict struct {
	Question string `json:"question"`
	About    string `json:"about,omitempty"`   // the beginning of the text that was judged
	Verdict  string `json:"verdict,omitempty"` // yes or no; empty where there is none
	Quote    string `json:"quote,omitempty"`   // the passage that a yes rests on
	Why      string `json:"why,omitempty"`     // why there is none
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Name    string `json:"name"`
	Calls   []struct {
		Name string `json:"name"`
		Args args   `json:"args"`
	} `json:"calls"`
}

type segment struct {
	ID   int `json:"id"`
	Turn int `json:"turn"`
	Origin
}

// recall is a record that entered a prompt.
type recall struct {
	Route      string `json:"route"`
	Record     string `json:"record"`
	Text       string `json:"text"` // where it is not the record's
	Attributed bool   `json:"attributed"`
}

// moment is a gate call as the transcript has it.
type moment struct {
	Session  int       `json:"session"`
	Gate     string    `json:"gate"`
	Route    string    `json:"route"`
	Op       string    `json:"op"`
	Record   string    `json:"record"`
	Text     string    `json:"text"`
	Action   string    `json:"action"`
	Shown    string    `json:"shown"`
	Message  *int      `json:"message"` // place of the message that it is part of; nil in transcripts of older versions
	Findings []Finding `json:"findings"`
}

// Finding is what one check had to say. Start and End are bytes of the text that
// was judged; both 0 where it means the whole.
type Finding struct {
	Check string `json:"check"`
	Note  string `json:"note,omitempty"`
	Start int    `json:"start"`
	End   int    `json:"end"`
}

// Origin says where a text came from.
type Origin struct {
	Class  string `json:"class"`
	Medium string `json:"medium,omitempty"`
	Source string `json:"source,omitempty"`
}

// Record is a memory.
type Record struct {
	ID    string `json:"id"`
	Store string `json:"store"`
	Key   string `json:"key"`
	Text  string `json:"text"`
	State string `json:"state"`
	Origin
	Poison bool `json:"poison,omitempty"` // filled in from the rows
	Legit  bool `json:"legit,omitempty"`
}

// Arg is an argument of a tool call.
type Arg struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// args keeps the arguments in the order in which they were written.
type args []Arg

// UnmarshalJSON reads an object.
func (a *args) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil // another version's
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			s = string(raw)
		}
		*a = append(*a, Arg{fmt.Sprint(key), s})
	}
	return nil
}
