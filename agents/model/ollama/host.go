package ollama

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/text"
)

// DefaultHost is where Ollama listens if nothing else is said.
const DefaultHost = "http://127.0.0.1:11434"

// Host reads an address as the variable OLLAMA_HOST holds it: a URL, HOST,
// HOST:PORT or :PORT. "" is DefaultHost. An address to listen on at all
// interfaces (0.0.0.0) is asked at this machine.
func Host(s string) (*url.URL, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		s = DefaultHost
	}
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		scheme, rest = "http", s
	}
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(authority, "@") {
		return nil, errors.New("OLLAMA_HOST holds a user or password: keys come from the environment or a file")
	}
	port := map[bool]string{true: map[string]string{"http": "80", "https": "443"}[scheme], false: "11434"}[ok]
	host := authority
	if a, err := netip.ParseAddr(strings.Trim(authority, "[]")); err == nil {
		host = a.String()
	} else if h, p, err := net.SplitHostPort(authority); err == nil {
		host, port = h, p
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("OLLAMA_HOST names the port %q: a port is a number from 1 to 65535", text.Clip(p, 20))
		}
	}
	switch host {
	case "", "0.0.0.0", "::":
		host = "127.0.0.1"
	}
	return remote.BaseURL((&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: "/" + path}).String())
}
