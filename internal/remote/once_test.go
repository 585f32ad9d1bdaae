package remote

import (
	"strings"
	"testing"
)

func TestOnce(t *testing.T) {
	fields, into := []string{"id", "answer", "write", "value", "list"}, []string{"write", "list"}
	for object, twice := range map[string]bool{
		`{"id":1,"answer":"x"}`:                             false,
		`{"id":1,"id":1}`:                                   true,
		`{"answer":"x","ANSWER":"y"}`:                       true,
		`{"answer":"x","an\u0073wer":"y"}`:                  true, // the same name, spelled otherwise
		`{"own":1,"own":2}`:                                 false,
		`{"write":{"value":"a"},"list":[{"value":"a"}]}`:    false,
		`{"write":{"value":"a","value":"b"}}`:               true,
		`{"list":[{"value":"a"},{"value":"a","Value":""}]}`: true,
		`{"own":{"value":"a","value":"b"}}`:                 false,
		`{"list":["a",1,null],"write":null}`:                false,
		`null`:                                              false,
		`[]`:                                                false,
	} {
		err := Once([]byte(object), fields, into)
		if (err != nil) != twice || err != nil && !strings.Contains(err.Error(), "one field twice") {
			t.Errorf("%s: %v", object, err)
		}
	}
	if err := Once([]byte(`{"id":`), fields, into); err == nil {
		t.Error("half an object is no error")
	}
}

func TestExact(t *testing.T) {
	fields := []string{"id", "value", "list"}
	for object, says := range map[string]string{
		`{"id":1,"value":"x","list":[{"value":"a"},{"value":"b"}],"own":{"Own":1}}`: "",
		`["id","id",{"id":1}]`:                    "",
		`{"id":1,"id":1}`:                         "one field twice",
		`{"own":1,"Own":2}`:                       "one field twice",
		`{"a":{"b":[{"own":1,"own":2}]}}`:         "one field twice",
		`{"a":{"own":1},"own":2}`:                 "",
		`{"value":"x","val\u0075e":"y"}`:          "one field twice",
		`{"Value":"x"}`:                           `is written "value"`,
		`{"list":[{"id":{"LIST":[]}}]}`:           `is written "list"`,
		"{\"li\u017ft\":1}":                       `is written "list"`, // what encoding/json takes for an s
		`{"id":`:                                  "EOF",
		`{"a":{},"a":[]}`:                         "one field twice",
		`{"a":[],"value":"a","b":"value","c":""}`: "",
	} {
		err := Exact([]byte(object), fields)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", object, err)
		}
	}
}
