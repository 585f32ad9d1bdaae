// Package kubernetes has no code: its test holds the manifests to the fields that
// Kubernetes has, and runs what their containers would run.
package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// document is the part of the API (batch/v1 Job, v1 PersistentVolumeClaim) that
// the manifests use, field by field, so that a misspelt one is found. The API's own
// Go types would bring a hundred modules for that.
type document struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		AccessModes []string  `yaml:"accessModes"`
		Resources   resources `yaml:"resources"`

		CompletionMode       string `yaml:"completionMode"`
		Completions          int    `yaml:"completions"`
		Parallelism          int    `yaml:"parallelism"`
		BackoffLimit         *int   `yaml:"backoffLimit"`
		BackoffLimitPerIndex *int   `yaml:"backoffLimitPerIndex"`
		PodFailurePolicy     struct {
			Rules []struct {
				Action      string `yaml:"action"`
				OnExitCodes struct {
					ContainerName string `yaml:"containerName"`
					Operator      string `yaml:"operator"`
					Values        []int  `yaml:"values"`
				} `yaml:"onExitCodes"`
			} `yaml:"rules"`
		} `yaml:"podFailurePolicy"`
		Template struct {
			Spec pod `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type resources struct {
	Requests map[string]string `yaml:"requests"`
	Limits   map[string]string `yaml:"limits"`
}

type pod struct {
	RestartPolicy                string `yaml:"restartPolicy"`
	AutomountServiceAccountToken *bool  `yaml:"automountServiceAccountToken"`
	SecurityContext              struct {
		RunAsNonRoot   bool `yaml:"runAsNonRoot"`
		RunAsUser      int  `yaml:"runAsUser"`
		RunAsGroup     int  `yaml:"runAsGroup"`
		FSGroup        int  `yaml:"fsGroup"`
		SeccompProfile struct {
			Type string `yaml:"type"`
		} `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	Containers []struct {
		Name  string   `yaml:"name"`
		Image string   `yaml:"image"`
		Args  []string `yaml:"args"`
		Env   []struct {
			Name      string `yaml:"name"`
			ValueFrom struct {
				FieldRef struct {
					FieldPath string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		} `yaml:"env"`
		SecurityContext struct {
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			Capabilities             struct {
				Drop []string `yaml:"drop"`
			} `yaml:"capabilities"`
		} `yaml:"securityContext"`
		Resources    resources `yaml:"resources"`
		VolumeMounts []struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	} `yaml:"containers"`
	Volumes []struct {
		Name                  string `yaml:"name"`
		PersistentVolumeClaim struct {
			ClaimName string `yaml:"claimName"`
		} `yaml:"persistentVolumeClaim"`
		EmptyDir *struct{} `yaml:"emptyDir"`
	} `yaml:"volumes"`
}

func read(t *testing.T, file string) []document {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	var out []document
	for {
		var one document
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, one)
	}
}

// check holds a job to what it promises: nobody's rights, nothing writable but
// its volumes, every mount a volume and every volume a claim that is there.
func check(t *testing.T, file string, job document, claim string) {
	t.Helper()
	p := job.Spec.Template.Spec
	if job.APIVersion != "batch/v1" || job.Kind != "Job" || len(p.Containers) != 1 || p.RestartPolicy != "Never" {
		t.Fatalf("%s: not a job of one container: %+v", file, job)
	}
	c := p.Containers[0]
	s, cs := p.SecurityContext, c.SecurityContext
	if !s.RunAsNonRoot || s.RunAsUser == 0 || s.RunAsGroup == 0 || s.FSGroup == 0 ||
		s.SeccompProfile.Type != "RuntimeDefault" || p.AutomountServiceAccountToken == nil ||
		*p.AutomountServiceAccountToken ||
		!cs.ReadOnlyRootFilesystem || cs.AllowPrivilegeEscalation == nil || *cs.AllowPrivilegeEscalation ||
		strings.Join(cs.Capabilities.Drop, "") != "ALL" || c.Resources.Limits["memory"] == "" {
		t.Errorf("%s: the pod has more rights than it needs: %+v", file, p)
	}
	volumes := map[string]bool{}
	for _, v := range p.Volumes {
		volumes[v.Name] = true
		if (v.EmptyDir != nil) == (v.PersistentVolumeClaim.ClaimName == claim) {
			t.Errorf("%s: the volume %s is neither empty nor the claim %s", file, v.Name, claim)
		}
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s: no volume %s", file, m.Name)
		}
	}
}

// The containers of both jobs, run here with what Kubernetes would put in for
// their variables, give the digest of one process.
func TestTheJobsRunAndMerge(t *testing.T) {
	shards, merge := read(t, "shards.yaml"), read(t, "merge.yaml")
	if len(shards) != 2 || shards[0].Kind != "PersistentVolumeClaim" || len(merge) != 1 {
		t.Fatalf("%d and %d documents", len(shards), len(merge))
	}
	claim, job := shards[0].Metadata.Name, shards[1]
	check(t, "shards.yaml", job, claim)
	check(t, "merge.yaml", merge[0], claim)
	n := job.Spec.Completions
	if job.Spec.CompletionMode != "Indexed" || n < 2 || job.Spec.Parallelism != n || job.Spec.BackoffLimitPerIndex == nil {
		t.Errorf("%+v", job.Spec)
	}
	for _, rule := range job.Spec.PodFailurePolicy.Rules {
		if rule.Action != "FailJob" || rule.OnExitCodes.ContainerName != job.Spec.Template.Spec.Containers[0].Name ||
			rule.OnExitCodes.Operator != "In" {
			t.Errorf("%+v", rule)
		}
	}
	dir := t.TempDir()
	memtox := filepath.Join(dir, "memtox")
	if out, err := exec.Command("go", "build", "-o", memtox, "../../cmd/memtox").CombinedOutput(); err != nil {
		t.Fatalf("building memtox: %v\n%s", err, out)
	}
	run := func(args ...string) string {
		t.Helper()
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "/runs/", dir+"/")
		}
		out, err := exec.Command(memtox, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("memtox %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	c := job.Spec.Template.Spec.Containers[0]
	if len(c.Env) != 1 || c.Env[0].ValueFrom.FieldRef.FieldPath != "metadata.annotations['batch.kubernetes.io/job-completion-index']" {
		t.Fatalf("%+v", c.Env)
	}
	small := []string{"--limit", "40", "--agent", "hermes"}
	var whole []string
	for index := range n {
		args := append([]string(nil), c.Args...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$("+c.Env[0].Name+")", fmt.Sprint(index))
			if strings.Contains(args[i], "$(") {
				t.Fatalf("no variable for %s", args[i])
			}
		}
		if index == 0 {
			for i := 0; i < len(args); i++ {
				switch args[i] {
				case "--shard", "--out":
					i++
				default:
					whole = append(whole, args[i])
				}
			}
		}
		run(append(args, small...)...)
	}
	digest := regexp.MustCompile(`digest ([0-9a-f]{16})`)
	merged := digest.FindString(run(append(merge[0].Spec.Template.Spec.Containers[0].Args, "--full")...))
	one := digest.FindString(run(append(whole, append(small, "--full", "--out", "/runs/one")...)...))
	if merged == "" || merged != one {
		t.Errorf("merged %q, one process %q", merged, one)
	}
}
