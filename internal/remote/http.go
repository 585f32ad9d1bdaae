package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// HTTP returns an http.Client over rt that follows no redirect: one would carry
// the key to another host.
func HTTP(rt http.RoundTripper) *http.Client {
	return &http.Client{Transport: rt, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// RoundTripper is a function that is an http.RoundTripper.
type RoundTripper func(*http.Request) (*http.Response, error)

func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Authorized sends a secret as a bearer token. It goes under a cassette, which
// then never sees it.
func Authorized(next http.RoundTripper, key Secret) http.RoundTripper {
	if key.IsZero() {
		return next
	}
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+key.Reveal())
		return next.RoundTrip(r)
	})
}

// Line is a value as one line of JSON, without the line feed; texts stay as they are.
func Line(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("writing a message: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Post sends a value as JSON and returns the answer's body, as [Exchange] does.
func Post(ctx context.Context, client *http.Client, address string, v any) ([]byte, error) {
	body, err := Line(v)
	if err != nil {
		return nil, err
	}
	return Exchange(ctx, client, http.MethodPost, address, "application/json", body)
}

// Exchange sends a request, whose body is JSON or nil, and returns the answer's body,
// which a [Client] bounds and holds to be whole. Its error does not repeat the address.
func Exchange(ctx context.Context, client *http.Client, method, address, accept string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("sending a message: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", accept)
	resp, err := client.Do(r)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	return b, nil
}

// Body reads the body of a request that is about to be sent.
func Body(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return b, nil
}

func WithBody(r *http.Request, body []byte) *http.Request {
	c := *r
	c.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	c.Body, _ = c.GetBody()
	c.ContentLength = int64(len(body))
	return &c
}

// BaseURL checks the address of a server.
func BaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		// The error of url.Parse repeats the address, which may hold a password.
		return nil, errors.New("the base URL cannot be read: write it as http://HOST:PORT/PATH")
	}
	switch {
	case u.User != nil:
		return nil, fmt.Errorf("the base URL of %s holds a user or password: keys come from the environment or a file",
			u.Host)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("the base URL is not http://HOST:PORT/PATH or https://HOST/PATH")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the base URL of %s has a query or a fragment: keys come from the environment or a file",
			u.Host)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

// IsReference reports whether a model's name is one under which memtox serves
// its reference model, which is no LLM.
func IsReference(name string) bool {
	return name == "reference" || strings.HasPrefix(name, "reference:")
}
