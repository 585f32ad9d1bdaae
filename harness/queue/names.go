package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/memtox/memtox/internal/remote"
	"github.com/memtox/memtox/internal/settings"
)

// names are what belongs to one queue on a server.
type names struct{ bucket, jobs, rows, large, jobSubject, rowSubject, status, over, done string }

func namesOf(queue string) names {
	p := "memtox-" + queue
	return names{bucket: p, jobs: p + "-jobs", rows: p + "-rows", large: p + "-large",
		jobSubject: "memtox." + queue + ".jobs", rowSubject: "memtox." + queue + ".rows",
		status: "memtox." + queue + ".status",
		over:   "memtox." + queue + ".over", done: "memtox." + queue + ".done"}
}

const runKey = "run"

// Announcement says what run a queue carries, and is what a worker compares
// itself with.
type Announcement struct {
	RunID   string `json:"run_id"`
	Version string `json:"version"` // of memtox
	// Settings are those of the run; Record is its run.json, with what names in
	// the settings stand for.
	Settings json.RawMessage `json:"settings"`
	Record   json.RawMessage `json:"record"`
	Planned  int64           `json:"planned"`
	// Over says that the run has ended: workers go home.
	Over bool `json:"over"`
}

// job is a span of the plan.
type job struct {
	Run   string `json:"run"`
	First int64  `json:"first"`
	N     int64  `json:"n"`
	// Server is the one that took the span; its name changes whenever it starts.
	Server string `json:"server,omitempty"`
}

// Status is what a worker says of itself.
type Status struct {
	Worker   string    `json:"worker"` // host, process and a random part
	Run      string    `json:"run"`
	Slots    int       `json:"slots"`
	Busy     int       `json:"busy"`
	Finished int64     `json:"finished"` // trials published
	Failed   int64     `json:"failed"`   // of these, not scored
	Unsent   int       `json:"unsent"`   // finished trials that the server has not taken yet
	Since    time.Time `json:"since"`
	// Left says that it goes home: nothing more is to be expected of it.
	Left bool `json:"left,omitempty"`
}

// Timings of the protocol. A span whose worker is silent for ackWait goes to
// another.
const (
	ackWait   = 15 * time.Second
	heartbeat = ackWait / 4
	statusGap = 2 * time.Second
	// linger is how long a finished trial waits for others to travel with: little
	// beside what a server's answers take, and no slot waits for it.
	linger = 50 * time.Millisecond
	// farewell is how long a coordinator waits for workers to go home.
	farewell = time.Second
)

// largest is what a message may hold; a trial that is larger goes through the
// object store.
const largest = 900 << 10

// inFlight is how many spans are on their way to the server at once.
const inFlight = 64

// maxLarge bounds a trial in the object store.
const maxLarge = 1 << 30

type Options struct {
	// URL of the server: nats://host:port or tls://host:port.
	URL string
	// Name tells the queues of one server apart; letters, digits, - and _.
	Name string
	// Token lets in; "" is none. Renewed, if it is not nil, gives it anew for each
	// connection: a server that starts again may have made another.
	Token   string
	Renewed func() string
	// NKeySeedFile is a file that holds an NKey seed, instead of a token.
	NKeySeedFile string
	// CA is a PEM file with the authorities to trust; "" is the system's.
	CA string
	// Log is told of what goes wrong and is mended; nil is nobody.
	Log func(format string, args ...any)
}

func (o *Options) logf(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

// connect opens a connection that comes back by itself. wait is how long the
// first connection may take.
func (o *Options) connect(ctx context.Context, as string, wait time.Duration) (*nats.Conn, jetstream.JetStream, error) {
	if err := ValidName(o.Name); err != nil {
		return nil, nil, err
	}
	opts := []nats.Option{
		nats.Name("memtox " + as), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, time.Second),
		// Only servers that the user named are asked, not those that one of them names.
		nats.IgnoreDiscoveredServers(), nats.Timeout(5 * time.Second), nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(3), nats.ReconnectBufSize(-1),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.logf("the connection to the queue is lost: %v", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { o.logf("connected to the queue again") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.logf("the queue: %v", err) }),
	}
	switch {
	case o.Renewed != nil:
		opts = append(opts, nats.TokenHandler(o.Renewed))
	case o.Token != "":
		opts = append(opts, nats.Token(o.Token))
	}
	if o.NKeySeedFile != "" {
		k, err := nats.NkeyOptionFromSeed(o.NKeySeedFile)
		if err != nil {
			return nil, nil, &settings.Problem{Where: "queue_nkey_file", Err: errors.New("the file holds no NKey seed")}
		}
		opts = append(opts, k)
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	var nc *nats.Conn
	var err error
	for end := time.Now().Add(wait); ; {
		if nc, err = nats.Connect(o.URL, opts...); err == nil {
			break
		}
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || time.Now().After(end) {
			return nil, nil, &settings.Problem{Where: "--queue", What: o.URL, Err: err,
				Hint: "is a server there, and is the token (MEMTOX_QUEUE_TOKEN) right?"}
		}
		if err := remote.Sleep(ctx, 200*time.Millisecond); err != nil {
			return nil, nil, err
		}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, nil, fmt.Errorf("using the queue at %s: %w", o.URL, err)
	}
	return nc, js, nil
}

// ValidName refuses a name of a queue that subjects could not hold.
func ValidName(s string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`).MatchString(s) {
		return &settings.Problem{Where: "queue_name", What: fmt.Sprintf("%q is no name for a queue", s),
			Hint: "at most 40 letters, digits, - and _"}
	}
	return nil
}
