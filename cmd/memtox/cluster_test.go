package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// link is one server's way to another: a proxy that can be cut.
type link struct {
	l     net.Listener
	to    string
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newLink(t *testing.T) *link {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &link{l: l}
	t.Cleanup(func() { l.Close(); k.cut(true) })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			k.mu.Lock()
			b, err := net.Dial("tcp", k.to)
			if k.down || err != nil {
				a.Close()
				if err == nil {
					b.Close()
				}
			} else {
				k.conns = append(k.conns, a, b)
				go func() { _, _ = io.Copy(a, b); a.Close() }()
				go func() { _, _ = io.Copy(b, a); b.Close() }()
			}
			k.mu.Unlock()
		}
	}()
	return k
}

// leadTo says where it leads; before that it is cut.
func (k *link) leadTo(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.to = addr
}

func (k *link) cut(down bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.down = down
	for _, c := range k.conns {
		c.Close()
	}
	k.conns = nil
}

// cluster is three servers whose only ways to each other are links.
type cluster struct {
	servers [3]*server.Server
	links   [3][3]*link // from, to
}

func newCluster(t *testing.T) *cluster {
	c := new(cluster)
	for i := range 3 {
		for j := range 3 {
			c.links[i][j] = newLink(t)
		}
	}
	dir := t.TempDir()
	for i := range 3 {
		o := &server.Options{ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true,
			NoLog:     true,
			JetStream: true, StoreDir: filepath.Join(dir, fmt.Sprint(i)),
			// Nobody finds another server but by its links.
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT, Advertise: "127.0.0.1:1",
				PoolSize: -1, NoAdvertise: true}}
		for j := range 3 {
			if i != j {
				u, _ := url.Parse("nats-route://" + c.links[i][j].l.Addr().String())
				o.Routes = append(o.Routes, u)
			}
		}
		s, err := server.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		c.servers[i] = s
	}
	for j, s := range c.servers {
		within(t, time.Minute, "a server does not start", func() bool { return s.ClusterAddr() != nil })
		for i := range 3 {
			c.links[i][j].leadTo(s.ClusterAddr().String())
		}
	}
	for _, s := range c.servers {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("a server does not start")
		}
	}
	return c
}

// cut takes a server off from the others, or lets it back.
func (c *cluster) cut(i int, down bool) {
	for j := range 3 {
		c.links[i][j].cut(down)
		c.links[j][i].cut(down)
	}
}

// A run whose queue is on a cluster of three loses no row and doubles none while one of
// the servers is cut off from the others and let back: that of the coordinator, that of
// a worker, or the one that leads the stream of rows.
func TestARunOutlivesAServerThatIsCutOff(t *testing.T) {
	if !long {
		t.Skip("servers take their time to elect a leader: MEMTOX_LONG=1 has them do it")
	}
	for _, whom := range []string{"the coordinator's", "a worker's", "the leader"} {
		t.Run(whom, func(t *testing.T) {
			t.Parallel()
			c := newConsole(t)
			want := spreadCases(c, 10)
			cl := newCluster(t)
			var js jetstream.JetStream
			for _, s := range cl.servers { // each has to know who leads before somebody asks it
				nc, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1))
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if js, err = jetstream.New(nc); err != nil {
					t.Fatal(err)
				}
				within(t, 3*time.Minute, "the cluster has no leader", func() bool {
					_, err := js.AccountInfo(context.Background())
					return err == nil
				})
			}
			run := c.spawn(append(spreadRun, "--queue", cl.servers[0].ClientURL(), "--out", "spread")...)
			workers := []*process{
				c.spawn("worker", "--queue", cl.servers[1].ClientURL(), "--concurrency", "1"),
				c.spawn("worker", "--queue", cl.servers[2].ClientURL(), "--concurrency", "1"),
			}
			var rows *jetstream.StreamInfo
			came := false
			defer func() {
				if !came {
					t.Logf("what was said:\n%s\n%s\n%s", run.text(), workers[0].text(), workers[1].text())
				}
			}()
			within(t, 3*time.Minute, "no row came", func() bool {
				s, err := js.Stream(context.Background(), "memtox-default-rows")
				if err != nil {
					return false
				}
				rows, err = s.Info(context.Background())
				return err == nil && rows.State.LastSeq > 2
			})
			came = true
			if rows.Config.Replicas != 3 {
				t.Errorf("the rows are on %d servers", rows.Config.Replicas)
			}
			lost := map[string]int{"the coordinator's": 0, "a worker's": 1}[whom]
			if whom == "the leader" {
				_, _ = fmt.Sscanf(rows.Cluster.Leader, "n%d", &lost)
			}
			cl.cut(lost, true)
			time.Sleep(8 * time.Second) // what the others need to elect another leader
			cl.cut(lost, false)
			done := make(chan error, 1)
			go func() { done <- run.Wait() }()
			select {
			case err := <-done:
				if err != nil {
					t.Fatalf("the coordinator failed: %v\n%s", err, run.text())
				}
			case <-time.After(3 * time.Minute):
				t.Fatalf("the run does not end:\n%s", run.text())
			}
			sameRows(t, want, filepath.Join(c.dir, "spread"))
			for _, w := range workers {
				w.ends(t)
			}
			t.Logf("server %d of 3 was cut off; the rows began with %s", lost, rows.Cluster.Leader)
		})
	}
}

// within waits for something that comes by itself.
func within(t testing.TB, d time.Duration, otherwise string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
