package proxy_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memtox/memtox/agents/model"
	"github.com/memtox/memtox/agents/model/ollama"
	"github.com/memtox/memtox/agents/model/openai"
	"github.com/memtox/memtox/agents/model/reference"
	"github.com/memtox/memtox/agents/proxy"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/internal/remote"
)

// serveEnv makes this test binary a server, so that the client's CPU time can be
// told from the server's.
const serveEnv = "MEMTOX_TEST_SERVE"

func TestMain(m *testing.M) {
	if v := os.Getenv(serveEnv); v != "" {
		latency, err := time.ParseDuration(v)
		if err != nil {
			panic(err)
		}
		s, err := proxy.New(proxy.Options{Latency: latency})
		if err != nil {
			panic(err)
		}
		ctx := context.Background()
		l, err := remote.Listen(ctx, "127.0.0.1:0", false)
		if err != nil {
			panic(err)
		}
		fmt.Println(l.Addr())
		if err := s.Serve(ctx, l, 0); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// conversations are the requests of real sessions, as a run makes them.
func conversations(b *testing.B) []model.Request {
	set, err := datasets.Open(context.Background(), "memtox-smoke")
	if err != nil {
		b.Fatal(err)
	}
	var t tape
	t.next = reference.New(reference.Cautious, nil)
	p := builtIn("hermes")
	for i := range set.Cases {
		outcome(b, p, &t, &set.Cases[i])
	}
	return t.asked
}

// tape keeps what a model is asked.
type tape struct {
	next  model.Model
	asked []model.Request
}

func (t *tape) Next(ctx context.Context, req model.Request) (model.Reply, error) {
	req.Messages = append([]model.Message(nil), req.Messages...)
	t.asked = append(t.asked, req)
	return t.next.Next(ctx, req)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkThroughput measures calls through a server in another process that
// answers after 100 ms. ideal% is the share of the throughput that the latency
// alone allows; client-ms/call is the CPU time of this process; heap-growth-MB is
// what the heap grew by from a tenth of the calls to the end.
//
//	go test -run '^$' -bench Throughput -benchtime 10000x ./agents/proxy
func BenchmarkThroughput(b *testing.B) {
	const latency = 100 * time.Millisecond
	asked := conversations(b)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+latency.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		b.Fatal(err)
	}
	base := "http://" + strings.TrimSpace(string(line[:n]))
	for _, inFlight := range []int{64, 256} {
		for _, protocol := range []string{"openai", "ollama"} {
			b.Run(fmt.Sprintf("%s/%d", protocol, inFlight), func(b *testing.B) {
				c := remote.New(remote.Options{InFlight: inFlight})
				defer c.Close()
				var m model.Model
				var err error
				if protocol == "openai" {
					m, err = openai.New(model.ServerOptions{Model: "reference", Address: base + "/v1", Client: c})
				} else {
					m, err = ollama.New(model.ServerOptions{Model: "reference", Address: base, Client: c})
				}
				if err != nil {
					b.Fatal(err)
				}
				work := make(chan int)
				var wg sync.WaitGroup
				failed := make([]error, inFlight)
				begun, spent := time.Now(), cpu()
				b.ResetTimer()
				for w := range inFlight {
					wg.Go(func() {
						for i := range work {
							if _, err := m.Next(context.Background(), asked[i%len(asked)]); err != nil {
								failed[w] = err
							}
						}
					})
				}
				early := uint64(0) // bytes on the heap when a tenth is done
				for i := range b.N {
					if i == b.N/10 {
						early = heap()
					}
					work <- i
				}
				close(work)
				wg.Wait()
				took, used := time.Since(begun), cpu()-spent
				b.StopTimer()
				for _, err := range failed {
					if err != nil {
						b.Fatal(err)
					}
				}
				grown := float64(heap()) - float64(early)
				// The last wave is as long as the others however few are in it.
				waves := (b.N + inFlight - 1) / inFlight
				b.ReportMetric(100*float64(waves)*latency.Seconds()/took.Seconds(), "ideal%")
				b.ReportMetric(used.Seconds()*1000/float64(b.N), "client-ms/call")
				b.ReportMetric(float64(b.N)/took.Seconds(), "calls/s")
				b.ReportMetric(grown/1e6, "heap-growth-MB")
			})
		}
	}
}
