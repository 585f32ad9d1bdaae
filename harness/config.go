package harness

import (
	"time"

	"github.com/memtox/memtox/datasets"
)

// Config holds every setting of a run. [Settings] describes each: its key, its
// flag, its type and what it means. Secrets never stand here, for a Config is
// written to run.json as it is.
type Config struct {
	Dataset  string
	Agents   []string
	Model    string
	BaseURL  string
	Record   string
	Replay   string
	KeyFile  string
	Protocol string
	Omit     []string
	// Remote models only; see the settings of the same names.
	Temperature, PricePrompt, PriceCompletion, MaxCost float64
	ReplyTokens, Attempts                              int
	RequestsPerMinute, TokensPerMinute                 int
	MaxRequests, MaxTokens                             int
	Stream, StripThinking                              bool
	RequestTimeout, TrialTimeout, RetryBudget          time.Duration
	// What judges beside the deterministic judge.
	Judge, JudgeBaseURL, JudgeKeyFile string

	Defenses []string
	Sweep    []string

	Classes  []string
	Channels []string
	Domains  []string
	Goals    []string
	Signals  []string
	Split    string
	Limit    int
	Mutate   []string
	Epochs   int
	Shard    string

	Seed       uint64
	Background int
	Window     int
	Policy     string
	Lineage    string
	// WriteSessions and Gap are lists of numbers: each pair is an agent of its own.
	WriteSessions []string
	Gap           []string

	DefenseBaseURL                                              string
	ExternalTimeout                                             time.Duration
	PassEnv                                                     []string
	Queue, Listen, QueueName                                    string
	QueueTokenFile, QueueNKeyFile, QueueCA, QueueCert, QueueKey string

	Concurrency  int
	MaxNotScored int
	Out          string
	Format       string
	Fsync        time.Duration
	Transcripts  string
}

// Deterministic is the value of the setting judge that asks no model.
const Deterministic = "deterministic"

// AllSplits is the value of the setting split that filters nothing.
const AllSplits = "all"

// DefaultConfig returns the settings of `memtox run` without flags.
func DefaultConfig() Config {
	return Config{
		Dataset:  "memtox-bench",
		Agents:   []string{"hermes", "openclaw"},
		Model:    "reference:cautious",
		Protocol: "tools",
		Attempts: 8, RequestTimeout: 5 * time.Minute, RetryBudget: 10 * time.Minute, TrialTimeout: time.Hour,
		ExternalTimeout: 10 * time.Second,
		Defenses:        []string{"none", "keyword", "provenance", "contradiction", "anomaly", "guard"},
		Split:           string(datasets.Report),
		Epochs:          1,
		Seed:            1,
		Background:      8,
		Judge:           Deterministic,
		Window:          8192,
		Policy:          "vague",
		Lineage:         "overlap",
		QueueName:       "default",
		WriteSessions:   []string{"1"},
		Gap:             []string{"0"},
		Format:          "table",
		Fsync:           time.Second,
		Transcripts:     "all",
	}
}

// Settings lists every setting in the order in which they are documented.
func Settings() []Setting {
	return []Setting{
		{Key: "dataset", Flag: "dataset", Arg: "NAME|FILE", Affects: true, Reach: Reads, builtin: here,
			Doc: "The cases: a built-in set (`memtox datasets list`), a file of cases, or a family file or a folder of them.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Dataset) }},
		{Key: "agent", Flag: "agent", Arg: "A,...", Affects: true, Reach: Acts, builtin: builtinAgent,
			Doc: "The agents: profiles that say how memory is used (`memtox agents list`), or one of your own: exec:COMMAND or http:URL (docs/your-own-agent.md), LABEL=exec:COMMAND. What follows exec: or http: is not split at commas.",
			at:  func(c *Config) Value { return (*specsValue)(&c.Agents) }},
		{Key: "model", Flag: "model", Arg: "MODEL", Affects: true, Reach: Acts, builtin: builtinModel,
			Doc: "What answers the next turn: reference, reference:naive, reference:cautious or reference:source-aware (deterministic, not an LLM); openai:NAME on any OpenAI-compatible server; ollama:NAME.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Model) }},
		{Key: "base_url", Flag: "base-url", Arg: "URL", Affects: true, Reach: Acts,
			Doc: "Where the model's server is: for openai: up to and with /v1, for ollama: the host (else OLLAMA_HOST). Keys come from the environment or key_file, never from here.",
			at:  func(c *Config) Value { return (*addressValue)(&c.BaseURL) }},
		{Key: "key_file", Arg: "FILE", Reach: Acts,
			Doc: "A file that holds the API key and nothing else. Without it the key is taken from OPENAI_API_KEY or OLLAMA_API_KEY.",
			at:  func(c *Config) Value { return (*stringValue)(&c.KeyFile) }},
		{Key: "protocol", Arg: "tools|fenced", Affects: true, Choices: []string{"tools", "fenced"}, Reach: Inert,
			Doc: "How a server's model calls tools: by the server's own tool calls, or by JSON in a fenced block for models that know none (`memtox doctor` tells).",
			at:  func(c *Config) Value { return (*stringValue)(&c.Protocol) }},
		{Key: "temperature", Arg: "T", Affects: true, Min: 0, Max: 2, Reach: Inert,
			Doc: "Temperature sent with each request to a server.",
			at:  func(c *Config) Value { return (*numberValue)(&c.Temperature) }},
		{Key: "omit", Arg: "M,...", Affects: true, Choices: []string{"temperature", "seed", "num_ctx"}, Reach: Inert,
			Doc: "Members of a request that the server refuses: they are left out.",
			at:  func(c *Config) Value { return (*listValue)(&c.Omit) }},
		{Key: "reply_tokens", Arg: "N", Affects: true, Min: 0, Max: 1 << 30, Reach: Inert,
			Doc: "Bound on the tokens of one answer of a server's model. An answer that it cuts is an error of its trial, never scored. 0 leaves it to the server.",
			at:  func(c *Config) Value { return (*intValue)(&c.ReplyTokens) }},
		{Key: "strip_thinking", Arg: "true|false", Affects: true, Reach: Inert,
			Doc: "Strip a leading `<think>…</think>` from answers, for servers that leave a model's reasoning in its text.",
			at:  func(c *Config) Value { return (*boolValue)(&c.StripThinking) }},
		{Key: "stream", Arg: "true|false", Reach: Inert,
			Doc: "Ask a server for answers in pieces, for gateways that cut a connection on which nothing comes for long.",
			at:  func(c *Config) Value { return (*boolValue)(&c.Stream) }},
		{Key: "request_timeout", Arg: "DURATION", Reach: Bounds,
			Doc: "How long one request to a server may take.",
			at:  func(c *Config) Value { return (*durationValue)(&c.RequestTimeout) }},
		{Key: "attempts", Arg: "N", Min: 1, Max: 1000, Reach: Bounds,
			Doc: "Most attempts of one call to a server, with growing waits between them; Retry-After is honoured.",
			at:  func(c *Config) Value { return (*intValue)(&c.Attempts) }},
		{Key: "retry_budget", Arg: "DURATION", Reach: Bounds,
			Doc: "Most time between the first and the last attempt of one call.",
			at:  func(c *Config) Value { return (*durationValue)(&c.RetryBudget) }},
		{Key: "trial_timeout", Arg: "DURATION", Reach: Bounds,
			Doc: "How long one trial may take; beyond it the trial is not scored. 0 is no bound.",
			at:  func(c *Config) Value { return (*durationValue)(&c.TrialTimeout) }},
		{Key: "requests_per_minute", Arg: "N", Min: 0, Max: 1 << 40, Reach: Inert,
			Doc: "The provider's limit on requests a minute; 0 is none.",
			at:  func(c *Config) Value { return (*intValue)(&c.RequestsPerMinute) }},
		{Key: "tokens_per_minute", Arg: "N", Min: 0, Max: 1 << 40, Reach: Inert,
			Doc: "The provider's limit on tokens a minute; 0 is none.",
			at:  func(c *Config) Value { return (*intValue)(&c.TokensPerMinute) }},
		{Key: "max_requests", Arg: "N", Min: 0, Max: 1 << 40, Reach: Bounds,
			Doc: "Stop the run, so that it can be resumed, before more requests than this were sent; 0 is no bound.",
			at:  func(c *Config) Value { return (*intValue)(&c.MaxRequests) }},
		{Key: "max_tokens", Arg: "N", Min: 0, Max: 1 << 50, Reach: Bounds,
			Doc: "Stop the run, so that it can be resumed, before more tokens than this were used; 0 is no bound.",
			at:  func(c *Config) Value { return (*intValue)(&c.MaxTokens) }},
		{Key: "max_cost", Arg: "USD", Min: 0, Max: 1 << 40, Reach: Bounds,
			Doc: "Stop the run, so that it can be resumed, before it cost more than this, by price_prompt and price_completion; 0 is no bound.",
			at:  func(c *Config) Value { return (*numberValue)(&c.MaxCost) }},
		{Key: "price_prompt", Arg: "USD", Min: 0, Max: 1 << 20, Reach: Bounds,
			Doc: "Price of a million prompt tokens, for max_cost and `memtox plan`.",
			at:  func(c *Config) Value { return (*numberValue)(&c.PricePrompt) }},
		{Key: "price_completion", Arg: "USD", Min: 0, Max: 1 << 20, Reach: Bounds,
			Doc: "Price of a million tokens of answers.",
			at:  func(c *Config) Value { return (*numberValue)(&c.PriceCompletion) }},
		{Key: "record", Flag: "record", Arg: "FILE", Reach: Acts,
			Doc: "Keep every exchange with the model's server in a cassette, so that the run can be replayed offline. The file must be new, except with --resume.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Record) }},
		{Key: "replay", Flag: "replay", Arg: "FILE", Reach: Acts,
			Doc: "Answer from a cassette and never from a server. A request that is not on the cassette is an error of its trial.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Replay) }},
		{Key: "judge", Flag: "judge", Arg: "JUDGE", Affects: true, Reach: Acts, builtin: builtinJudge,
			Doc: "What judges outcomes: deterministic (canary, stance, tool arguments), or llm:MODEL, which reads beside it where no value can be looked for (docs/judges.md). MODEL as in --model.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Judge) }},
		{Key: "judge_base_url", Arg: "URL", Affects: true, Reach: Acts,
			Doc: "Where the judge's server is. Without it a model of the same kind as --model is looked for at --base-url.",
			at:  func(c *Config) Value { return (*addressValue)(&c.JudgeBaseURL) }},
		{Key: "judge_key_file", Arg: "FILE", Reach: Acts,
			Doc: "A file that holds the API key of the judge's server and nothing else. Without it the key comes from the environment, or from key_file where the judge is at --base-url.",
			at:  func(c *Config) Value { return (*stringValue)(&c.JudgeKeyFile) }},
		{Key: "defense", Flag: "defense", Arg: "X,...", Affects: true, Reach: Acts, builtin: builtinDefense,
			Doc: "The defenses, each an arm (`memtox defenses list`): NAME, NAME@input, NAME@write, NAME@read, NAME:FILE, LABEL=NAME. What follows exec:, http: or judge: is not split at commas.",
			at:  func(c *Config) Value { return (*specsValue)(&c.Defenses) }},

		{Key: "sweep", Flag: "sweep", Arg: "D.KEY=FROM:TO:STEP,...", Affects: true, Reach: Acts, builtin: builtinSweep,
			Doc: "Run a threshold of a defense over a range, an arm for every value, beside the defenses: anomaly.z=1:6:0.5, or keyword.scope=relaxed|strict. With both splits (`--split all`) one point is chosen on tune and its figure given on report.",
			at:  func(c *Config) Value { return (*listValue)(&c.Sweep) }},

		{Key: "class", Flag: "class", Arg: "C,...", Affects: true, Reach: Inert,
			Doc: "Only attacks of these classes (`memtox attacks list`). Benign cases stay.",
			at:  func(c *Config) Value { return (*listValue)(&c.Classes) }},
		{Key: "channel", Arg: "C,...", Affects: true, Choices: []string{"C1", "C2", "C3", "C4"}, Reach: Inert,
			Doc: "Only attacks that aim at these write channels. Benign cases stay.",
			at:  func(c *Config) Value { return (*listValue)(&c.Channels) }},
		{Key: "domain", Arg: "D,...", Affects: true, Reach: Inert,
			Doc: "Only cases of these domains, attacks and benign ones alike.",
			at:  func(c *Config) Value { return (*listValue)(&c.Domains) }},
		{Key: "goal", Arg: "G,...", Affects: true, Reach: Inert,
			Doc: "Only attacks with these adversarial goals. Benign cases stay.",
			at:  func(c *Config) Value { return (*listValue)(&c.Goals) }},
		{Key: "signal", Arg: "S,...", Affects: true, Reach: Inert,
			Doc: "Only attacks of this signal strength (strong, weak; a foreign set may have others). Benign cases stay.",
			at:  func(c *Config) Value { return (*listValue)(&c.Signals) }},
		{Key: "split", Flag: "split", Arg: "report|tune|all", Affects: true, Reach: Inert,
			Choices: []string{string(datasets.Report), string(datasets.Tune), AllSplits},
			Doc:     "Which split to run. Figures are reported on report; lexicons and thresholds were tuned on tune. A set without splits is all report.",
			at:      func(c *Config) Value { return (*stringValue)(&c.Split) }},
		{Key: "limit", Flag: "limit", Arg: "N", Affects: true, Min: 0, Max: 1 << 40, Reach: Inert,
			Doc: "At most N cases, before they are mutated: a sample of attacks and benign cases together, stratified by class and kind, the same for the same seed; a smaller limit takes a part of a larger one's. 0 takes all.",
			at:  func(c *Config) Value { return (*intValue)(&c.Limit) }},
		{Key: "mutate", Flag: "mutate", Arg: "M,...", Affects: true, Reach: Inert,
			Doc: "Run variants of the attacks in their place: mutations (`memtox attacks mutations`), several in a row joined by +, as in paraphrase+echo, or all, each by itself. With none in the list the original attacks run beside them. Benign cases stay as they are.",
			at:  func(c *Config) Value { return (*listValue)(&c.Mutate) }},
		{Key: "epochs", Flag: "epochs", Arg: "K", Affects: true, Min: 1, Max: 1 << 20, Reach: Inert,
			Doc: "How often each case is run in each arm. More than once is refused for a deterministic model, whose repeats would count the same trial again.",
			at:  func(c *Config) Value { return (*intValue)(&c.Epochs) }},
		{Key: "shard", Flag: "shard", Arg: "I/N", Affects: true, Reach: Inert,
			Doc: "Run only the I-th of N parts of the trials, for machines that share the work without talking to each other; `memtox merge` puts the parts together. Which part a trial belongs to depends on its id alone.",
			at:  func(c *Config) Value { return (*shardValue)(&c.Shard) }},

		{Key: "seed", Flag: "seed", Arg: "S", Affects: true, Reach: Inert,
			Doc: "Seed of the sample, of the background memories and of whatever a defense draws at random.",
			at:  func(c *Config) Value { return (*seedValue)(&c.Seed) }},
		{Key: "background", Flag: "background", Arg: "N", Affects: true, Min: 0, Max: 1 << 20, Reach: Inert,
			Doc: "How many ordinary memories stand in memory before a trial. An empty memory (0) is easier to poison than a real one.",
			at:  func(c *Config) Value { return (*intValue)(&c.Background) }},
		{Key: "window", Arg: "TOKENS", Affects: true, Min: 256, Max: 1 << 30, Reach: Inert,
			Doc: "Context window in tokens. Compaction, flush and review thresholds scale with it. One that the server's context does not hold is refused, where the server says how much it holds.",
			at:  func(c *Config) Value { return (*intValue)(&c.Window) }},
		{Key: "policy", Arg: "vague|scoped|source-aware", Affects: true, Choices: []string{"vague", "scoped", "source-aware"}, Reach: Inert,
			Doc: "The retention policy in the agent's system prompt: what it is told to keep.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Policy) }},
		{Key: "lineage", Arg: "overlap|window|exact", Affects: true, Choices: []string{"overlap", "window", "exact"}, Reach: Inert,
			Doc: "How a write's origin is found: overlap takes the least trusted segment that holds each of its spans, window the least trusted segment in the context, exact the case's own truth (an oracle, for comparison).",
			at:  func(c *Config) Value { return (*stringValue)(&c.Lineage) }},

		{Key: "write_sessions", Arg: "K,...", Affects: true, Reach: Inert,
			Doc: "How many write sessions there are, 1 to 50. In those behind the first the content comes back, claims drift and skills are revised. Several numbers are several agents, such as hermes+w3.",
			at:  func(c *Config) Value { return (*listValue)(&c.WriteSessions) }},
		{Key: "gap", Arg: "N,...", Affects: true, Reach: Inert,
			Doc: "How many ordinary sessions lie between writing and retrieval, 0 to 1000: the user has things remembered, asks about mail, has the memory tidied up. Several numbers are several agents, such as hermes+g10.",
			at:  func(c *Config) Value { return (*listValue)(&c.Gap) }},

		{Key: "defense_base_url", Arg: "URL", Affects: true, Reach: Acts,
			Doc: "Where the server of the models is that judge: defenses ask. Without it that of the model, if it is of the same kind.",
			at:  func(c *Config) Value { return (*addressValue)(&c.DefenseBaseURL) }},
		{Key: "external_timeout", Arg: "DURATION", Reach: Bounds,
			Doc: "How long a guard, classifier or agent outside memtox may take for one answer. One that takes longer has failed: its trial is not scored.",
			at:  func(c *Config) Value { return (*durationValue)(&c.ExternalTimeout) }},
		{Key: "pass_env", Arg: "NAME,...", Reach: Acts,
			Doc: "Environment variables that programs outside memtox are handed. Beside these they get PATH, HOME, the language, the time zone and the folder for temporary files, and nothing else.",
			at:  func(c *Config) Value { return (*listValue)(&c.PassEnv) }},

		{Key: "queue", Flag: "queue", Arg: "URL", Reach: Own,
			Doc: "Hand the trials to `memtox worker` processes through the NATS JetStream server at this address (nats:// or tls://). The rows are those of a run in one process.",
			at:  func(c *Config) Value { return (*queueValue)(&c.Queue) }},
		{Key: "listen", Flag: "listen", Arg: "HOST:PORT", Reach: Own,
			Doc: "Start such a server in this process for workers to join. Any address but loopback requires a token and TLS; on loopback a token is made where none is given.",
			at:  func(c *Config) Value { return (*queueValue)(&c.Listen) }},
		{Key: "queue_name", Arg: "NAME", Reach: Own,
			Doc: "Tells several queues of one server apart.",
			at:  func(c *Config) Value { return (*stringValue)(&c.QueueName) }},
		{Key: "queue_token_file", Arg: "FILE", Reach: Own,
			Doc: "A file that holds the queue's token and nothing else; a worker reads it anew when it connects again. Without it the token is taken from MEMTOX_QUEUE_TOKEN.",
			at:  func(c *Config) Value { return (*stringValue)(&c.QueueTokenFile) }},
		{Key: "queue_nkey_file", Arg: "FILE", Reach: Own,
			Doc: "A file with the NKey seed by which a NATS server lets in, instead of a token.",
			at:  func(c *Config) Value { return (*stringValue)(&c.QueueNKeyFile) }},
		{Key: "queue_ca", Arg: "FILE", Reach: Own,
			Doc: "A PEM file with the authorities that a queue's TLS certificate is checked against; empty is the system's.",
			at:  func(c *Config) Value { return (*stringValue)(&c.QueueCA) }},
		{Key: "queue_cert", Arg: "FILE", Reach: Own,
			Doc: "The PEM certificate with which `--listen` speaks TLS.",
			at:  func(c *Config) Value { return (*stringValue)(&c.QueueCert) }},
		{Key: "queue_key", Arg: "FILE", Reach: Own,
			Doc: "The PEM key of queue_cert.",
			at:  func(c *Config) Value { return (*stringValue)(&c.QueueKey) }},

		{Key: "concurrency", Flag: "concurrency", Arg: "N", Min: 0, Max: 1 << 16, Reach: Inert,
			Doc: "How many cases are worked on at once. 0 is one a processor. Outcomes do not depend on it.",
			at:  func(c *Config) Value { return (*intValue)(&c.Concurrency) }},
		{Key: "max_not_scored", Flag: "max-not-scored", Arg: "N", Min: 0, Max: 1 << 40, Reach: Inert,
			Doc: "How many trials may end in an error before the run counts as bad news (exit code 1).",
			at:  func(c *Config) Value { return (*intValue)(&c.MaxNotScored) }},
		{Key: "out", Flag: "out", Arg: "DIR", Reach: Own,
			Doc: "The run directory. Empty makes a new one under runs/.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Out) }},
		{Key: "format", Flag: "format", Arg: "table|json|markdown", Choices: []string{"table", "json", "markdown"}, Reach: Inert,
			Doc: "What is printed at the end.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Format) }},
		{Key: "fsync", Arg: "DURATION", Reach: Inert,
			Doc: "How long a finished trial may wait until it is forced to disk: what a power cut can lose. A killed process loses nothing that it finished.",
			at:  func(c *Config) Value { return (*durationValue)(&c.Fsync) }},
		{Key: "transcripts", Arg: "all|none", Affects: true, Choices: []string{"all", "none"}, Reach: Inert,
			Doc: "Whether each trial's conversation, decisions and memory are kept beside its row.",
			at:  func(c *Config) Value { return (*stringValue)(&c.Transcripts) }},
	}
}
