package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/memtox/memtox/defenses/guard/serve"
)

// listening serves the guard on a socket.
func listening(t *testing.T, limits serve.Limits) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h := serve.Handler(newServer(t, nil), serve.HandlerOptions{Limits: limits})
		_ = serve.ServeHTTP(ctx, l, h, limits, time.Millisecond)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return l.Addr().String()
}

// slow sends the beginning of a request and stops.
func slow(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\n\r\n{\"id\":1,", addr); err != nil {
		t.Fatal(err)
	}
	return c
}

func hello(t *testing.T, client *http.Client, addr string) {
	t.Helper()
	resp, err := client.Post("http://"+addr, "application/json", strings.NewReader(`{"id":1,"op":"hello","protocol":1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s (%v)", resp.Status, b, err)
	}
}

func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	addr := listening(t, serve.Limits{Concurrent: 4, Time: time.Hour})
	for range 20 { // five times as many as there are places
		slow(t, addr)
	}
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for range 10 {
		hello(t, client, addr)
	}
}

func TestTheSlowestConnectionGivesWay(t *testing.T) {
	addr := listening(t, serve.Limits{Connections: 8, Time: time.Hour})
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	closed := make(chan error, 8)
	for range 8 {
		c := slow(t, addr)
		go func() {
			_, err := c.Read(make([]byte, 1))
			closed <- err
		}()
	}
	hello(t, client, addr)
	if err := <-closed; err == nil {
		t.Error("a slow connection was answered")
	}
	for range 100 { // whoever is quick is answered among any number of slow ones
		slow(t, addr)
		hello(t, client, addr)
	}
}

func TestASlowRequestHasItsTime(t *testing.T) {
	addr := listening(t, serve.Limits{Time: 50 * time.Millisecond})
	for _, begin := range []string{"", "POST", "POST / HTTP/1.1\r\nHost: localhost\r\n",
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, begin); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, bufio.NewReader(c)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: the connection stays open", begin)
		}
		c.Close()
	}
}

// A message in which a name stands twice is answered with an error, and reaches no
// tool.
func TestAnMCPMessageThatIsReadInTwoWaysIsRefused(t *testing.T) {
	for _, call := range []string{
		`"params":{"name":"add_memory","arguments":{"content":"tea","content":"coffee"}}`,
		`"params":{"name":"add_memory","arguments":{"content":"tea","Content":"coffee"}}`,
		`"params":{"name":"add_memory","arguments":{"Content":"tea"}}`,
		`"params":{"name":"add_memory","arguments":{"content":"tea"},"arguments":{"content":"coffee"}}`,
		`"params":{"name":"get_memories","name":"add_memory","arguments":{"content":"tea"}}`,
		`"params":{"name":"add_memory","arguments":{"content":"tea"}},"Params":{}`,
	} {
		m := newMemory(t, serve.MemoryOptions{})
		in, client := io.Pipe()
		answers, out := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			ended <- serve.ServeMCP(context.Background(), serve.NewMCP(m, "test", serve.Limits{}), in, out, time.Second)
		}()
		lines := bufio.NewScanner(answers)
		ask := func(line string) string {
			t.Helper()
			if _, err := io.WriteString(client, line+"\n"); err != nil {
				t.Fatal(err)
			}
			lines.Scan()
			return lines.Text()
		}
		ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		if _, err := io.WriteString(client, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		if got := ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call",` + call + `}`); !strings.Contains(got, "the field") ||
			!strings.Contains(got, `"id":2`) {
			t.Errorf("%s\n%s", call, got)
		}
		if got := ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_memories"}}`); !strings.Contains(got, `\"total\":0`) {
			t.Errorf("%s\n%s", call, got)
		}
		client.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		out.Close()
	}
}
