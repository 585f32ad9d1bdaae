package harness

import (
	_ "embed"
	"time"
)

// Config holds every setting of a run. settings.yaml describes each: its key, its flag,
// its bounds and what it means. Secrets never stand here, for a Config is written to
// run.json as it is.
type Config struct {
	Dataset           string        `key:"dataset"`
	Agents            []string      `key:"agent"`
	Model             string        `key:"model"`
	BaseURL           string        `key:"base_url"`
	KeyFile           string        `key:"key_file"`
	Protocol          string        `key:"protocol"`
	Temperature       float64       `key:"temperature"`
	Omit              []string      `key:"omit"`
	ReplyTokens       int           `key:"reply_tokens"`
	StripThinking     bool          `key:"strip_thinking"`
	Stream            bool          `key:"stream"`
	RequestTimeout    time.Duration `key:"request_timeout"`
	Attempts          int           `key:"attempts"`
	RetryBudget       time.Duration `key:"retry_budget"`
	TrialTimeout      time.Duration `key:"trial_timeout"`
	TrialTokens       int           `key:"trial_tokens"`
	TrialMessages     int           `key:"trial_messages"`
	RequestsPerMinute int           `key:"requests_per_minute"`
	TokensPerMinute   int           `key:"tokens_per_minute"`
	MaxRequests       int           `key:"max_requests"`
	MaxTokens         int           `key:"max_tokens"`
	MaxCost           float64       `key:"max_cost"`
	PricePrompt       float64       `key:"price_prompt"`
	PriceCompletion   float64       `key:"price_completion"`
	Record            string        `key:"record"`
	Replay            string        `key:"replay"`
	Embeddings        string        `key:"embeddings"`
	EmbeddingsBaseURL string        `key:"embeddings_base_url"`
	EmbeddingsKeyFile string        `key:"embeddings_key_file"`
	Judge             string        `key:"judge"`
	JudgeBaseURL      string        `key:"judge_base_url"`
	JudgeKeyFile      string        `key:"judge_key_file"`
	Defenses          []string      `key:"defense"`
	Sweep             []string      `key:"sweep"`
	Classes           []string      `key:"class"`
	Channels          []string      `key:"channel"`
	Domains           []string      `key:"domain"`
	Goals             []string      `key:"goal"`
	Signals           []string      `key:"signal"`
	Split             string        `key:"split"`
	Limit             int           `key:"limit"`
	Mutate            []string      `key:"mutate"`
	Epochs            int           `key:"epochs"`
	Shard             string        `key:"shard"`
	Seed              uint64        `key:"seed"`
	Background        int           `key:"background"`
	Window            int           `key:"window"`
	Policy            string        `key:"policy"`
	Lineage           string        `key:"lineage"`
	// WriteSessions and Gap are lists: each pair is an agent of its own.
	WriteSessions   []int         `key:"write_sessions"`
	Gap             []int         `key:"gap"`
	Via             []string      `key:"via"`
	ViaEach         bool          `key:"via_each"`
	DefenseBaseURL  string        `key:"defense_base_url"`
	ExternalTimeout time.Duration `key:"external_timeout"`
	PassEnv         []string      `key:"pass_env"`
	Queue           string        `key:"queue"`
	Listen          string        `key:"listen"`
	QueueName       string        `key:"queue_name"`
	QueueTokenFile  string        `key:"queue_token_file"`
	QueueNKeyFile   string        `key:"queue_nkey_file"`
	QueueCA         string        `key:"queue_ca"`
	QueueCert       string        `key:"queue_cert"`
	QueueKey        string        `key:"queue_key"`
	Concurrency     int           `key:"concurrency"`
	MaxNotScored    int           `key:"max_not_scored"`
	Out             string        `key:"out"`
	Format          string        `key:"format"`
	Full            bool          `key:"full"`
	Mix             string        `key:"mix"`
	Fsync           time.Duration `key:"fsync"`
	Transcripts     string        `key:"transcripts"`
}

// Deterministic is the value of the setting judge that asks no model.
const Deterministic = "deterministic"

// AllSplits is the value of the setting split that filters nothing.
const AllSplits = "all"

//go:embed defaults.yaml
var defaultsYAML []byte

// DefaultConfig returns the settings of `memtox run` without flags.
func DefaultConfig() (c Config) {
	if err := c.Load("defaults.yaml", defaultsYAML); err != nil {
		panic(err) // the file is part of the program
	}
	return c
}
