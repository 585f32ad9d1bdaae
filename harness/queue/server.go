package queue

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// ServerOptions say how a queue's own server listens.
type ServerOptions struct {
	Addr string // HOST:PORT; port 0 takes a free one
	Dir  string // where it keeps what waits; it is made for this user alone
	// Token must be given by whoever connects. Any address but loopback requires
	// one, and TLS. On loopback "" has the server make one of its own, in a file of
	// Dir that only this user can read.
	Token string
	// Cert and Key are PEM files for TLS.
	Cert, Key string
	Log       func(format string, args ...any)
}

// Server is a NATS server in this process.
type Server struct {
	s *server.Server
	// Token lets in. TokenFile holds it where the server made it itself; else "".
	Token, TokenFile string
}

const tokenFile = "token"

// private makes dir, or takes one that is there, for this user alone, and puts a new
// token into it. Whatever a directory made elsewhere may hold, it is not followed,
// and its token is not used: whoever made it would know it.
func private(dir string) (token, path string, err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return "", "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if st, e := os.Lstat(dir); e != nil || !st.IsDir() {
			return "", "", err
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			return "", "", err
		}
	}
	path = filepath.Join(dir, tokenFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", "", err
	}
	token = rand.Text()
	_, err = f.WriteString(token + "\n")
	return token, path, errors.Join(err, f.Close())
}

// Listen starts a server. What it has taken is on disk before it says so.
func Listen(o ServerOptions) (*Server, error) {
	host, port, err := net.SplitHostPort(o.Addr)
	n, perr := strconv.Atoi(port)
	if err != nil || perr != nil || n < 0 || n > 65535 {
		return nil, &settings.Problem{Where: "--listen", What: fmt.Sprintf("%q is no HOST:PORT", o.Addr),
			Hint: "for instance 127.0.0.1:4222"}
	}
	if !remote.Loopback(host) {
		switch {
		case o.Token == "":
			return nil, &settings.Problem{Where: "--listen",
				What: o.Addr + " can be reached from other machines: a token is required",
				Hint: "put a long random one into MEMTOX_QUEUE_TOKEN here and where the workers run"}
		case o.Cert == "" || o.Key == "":
			return nil, &settings.Problem{Where: "--listen",
				What: o.Addr + " can be reached from other machines: TLS is required",
				Hint: "name a certificate and its key with --set queue_cert=FILE --set queue_key=FILE"}
		}
	}
	out := &Server{Token: o.Token}
	if o.Token == "" {
		if out.Token, out.TokenFile, err = private(o.Dir); err != nil {
			return nil, fmt.Errorf("making a token for the queue's server: %w", err)
		}
	}
	if n == 0 {
		n = server.RANDOM_PORT
	}
	opts := &server.Options{ServerName: "memtox", Host: host, Port: n, Authorization: out.Token, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, MaxPayload: 1 << 20, MaxConn: 4096, AuthTimeout: 3,
		MaxControlLine: 4096}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, &settings.Problem{Where: "queue_cert", Err: err}
		}
		opts.TLS, opts.TLSTimeout = true, 5
		opts.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("starting the queue's server: %w", err)
	}
	out.s = s
	if o.Log != nil {
		s.SetLoggerV2(logger{o.Log}, false, false, false)
	}
	go s.Start()
	if !s.ReadyForConnections(15 * time.Second) {
		s.Shutdown()
		return nil, &settings.Problem{Where: "--listen", What: "no server could be started at " + o.Addr,
			Err: errors.New("is the address in use?")}
	}
	return out, nil
}

// URL is where the server listens.
func (s *Server) URL() string { return s.s.ClientURL() }

// Close stops the server. What waits stays on disk.
func (s *Server) Close() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

// logger passes on what matters: who was refused and what failed.
type logger struct {
	log func(format string, args ...any)
}

func (logger) Noticef(string, ...any)           {}
func (logger) Debugf(string, ...any)            {}
func (logger) Tracef(string, ...any)            {}
func (l logger) Warnf(format string, v ...any)  { l.log(format, v...) }
func (l logger) Errorf(format string, v ...any) { l.log(format, v...) }
func (l logger) Fatalf(format string, v ...any) { l.log(format, v...) }
