package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Loopback reports whether a host is this machine and no other can reach it:
// localhost, or an address of the loopback interface.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Listen opens an address, HOST:PORT. One that other machines can reach is refused
// unless open says that it is meant.
func Listen(ctx context.Context, addr string, open bool) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: an address is HOST:PORT: %w", addr, err)
	}
	if !open && !Loopback(host) {
		return nil, fmt.Errorf("listening on %q: other machines could reach it; use 127.0.0.1, or say that it is meant", addr)
	}
	if !open && host == "localhost" {
		addr = net.JoinHostPort("127.0.0.1", port)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %q: %w", addr, err)
	}
	return l, nil
}

// ErrCutOff is the error of [Serve] where requests were still running at the end.
var ErrCutOff = errors.New("requests were cut off")

// Serve answers on a listener until ctx is over, then lets requests in flight finish
// for at most grace. It bounds what srv leaves unbounded.
func Serve(ctx context.Context, l net.Listener, srv *http.Server, grace time.Duration) error {
	srv.ReadHeaderTimeout = cmp.Or(srv.ReadHeaderTimeout, 10*time.Second)
	srv.IdleTimeout = cmp.Or(srv.IdleTimeout, 2*time.Minute)
	srv.MaxHeaderBytes = cmp.Or(srv.MaxHeaderBytes, 64<<10)
	srv.ErrorLog = log.New(io.Discard, "", 0) // what clients do wrong is theirs
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := srv.Shutdown(late)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(fmt.Errorf("%w %s after the end", ErrCutOff, grace), srv.Close())
	}
	<-served
	return err
}
