package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
)

// chart renders the Helm chart. TEST_ONECLAW_HELM names the program that does it, which
// .ci/run installs; without it the tests of the chart are skipped.
type chart struct {
	t    *testing.T
	helm string
}

func theChart(t *testing.T) *chart {
	t.Helper()
	helm := os.Getenv("TEST_ONECLAW_HELM")
	if helm == "" {
		var err error
		if helm, err = exec.LookPath("helm"); err != nil {
			t.Skip("Helm is not installed: the chart is not rendered")
		}
	}
	return &chart{t, helm}
}

func (c *chart) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.helm, args...)
	home := c.t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// render returns what the chart becomes, by the kinds of the objects.
func (c *chart) render(args ...string) map[string]map[string]any {
	c.t.Helper()
	out, err := c.run(append([]string{"template", "oneclaw", filepath.Join(deployFolder, "helm"), "--kube-version", "1.30"}, args...)...)
	if err != nil {
		c.t.Fatalf("%v: %s", err, out)
	}
	objects := map[string]map[string]any{}
	for _, o := range yamls(c.t, []byte(out)) {
		kind, _ := o["kind"].(string)
		if objects[kind] != nil || o["apiVersion"] == nil || at(o, "metadata", "name") == nil {
			c.t.Errorf("an object of the kind %q has no name, or there are two", kind)
		}
		objects[kind] = o
	}
	return objects
}

const sharedStore = "store=postgres://oneclaw@db.example.com/oneclaw"

// clustered are the values of a cluster with everything switched on.
var clustered = []string{
	"--set", sharedStore, "--set", "publicURL=https://bot.example.com", "--set", "ingress.enabled=true", "--set", "ingress.tlsSecret=tls",
	"--set", "networkPolicy.enabled=true", "--set", "settings.ONECLAW_ADMINS=telegram:123", "--set-json", `config={"approvals":[{"tool":"exec","policy":"deny"}]}`,
}

func single() []string {
	return []string{"--values", filepath.Join(deployFolder, "helm", "values-single.yaml")}
}

func TestChartIsCorrectForHelm(t *testing.T) {
	c := theChart(t)
	for _, values := range [][]string{{"--set", sharedStore}, clustered, single()} {
		if out, err := c.run(append([]string{"lint", "--strict", filepath.Join(deployFolder, "helm")}, values...)...); err != nil {
			t.Errorf("%q: %v: %s", values, err, out)
		}
	}
}

func TestChartIsReplicasOnADatabase(t *testing.T) {
	objects := theChart(t).render(clustered...)
	if got := keysOf(any(kinds(objects))); !slices.Equal(got, []string{"ConfigMap", "Deployment", "Ingress", "NetworkPolicy", "PodDisruptionBudget", "Service"}) {
		t.Errorf("it makes %q", got)
	}
	cfg := podIsSafe(t, objects["Deployment"])
	if !cfg.Store.Shared() || cfg.SecretKey == "" || cfg.StorePassword == "" || cfg.PublicURL != "https://bot.example.com" || len(cfg.Access.Admins) != 1 {
		t.Errorf("the program gets %+v", cfg.DataConfig)
	}
	spec := at(objects["Deployment"], "spec")
	if n := at(spec, "replicas"); n != 2 {
		t.Errorf("%v replicas", n)
	}
	if at(objects["Service"], "spec", "publishNotReadyAddresses") != nil {
		t.Error("a replica that does not receive gets what a ready one could take")
	}
	if at(spec, "strategy", "type") != "RollingUpdate" || at(spec, "strategy", "rollingUpdate", "maxUnavailable") != 0 {
		t.Errorf("an upgrade goes by %v", at(spec, "strategy"))
	}
	labels := at(spec, "template", "metadata", "labels")
	for _, selector := range []any{at(spec, "selector", "matchLabels"), at(objects["Service"], "spec", "selector"), at(objects["PodDisruptionBudget"], "spec", "selector", "matchLabels"), at(objects["NetworkPolicy"], "spec", "podSelector", "matchLabels")} {
		for _, key := range keysOf(selector) {
			if at(selector, key) != at(labels, key) {
				t.Errorf("a selector wants %s=%v, which the pods have not", key, at(selector, key))
			}
		}
	}
	// All commands in the pod read the file that the bot reads.
	settings, file := at(objects["ConfigMap"], "data", "oneclaw.yaml"), any(nil)
	for _, one := range at(spec, "template", "spec", "containers", 0, "env").([]any) {
		if at(one, "name") == config.FileVariable {
			file = at(one, "value")
		}
	}
	if file != "/etc/oneclaw/oneclaw.yaml" || settings == nil {
		t.Fatalf("its settings file is %v", file)
	}
	read := config.Default()
	if err := config.DecodeConfig([]byte(settings.(string)), &read); err != nil || len(read.Approvals) != 1 {
		t.Errorf("settings %s: %v", settings, err)
	}
	rule := at(objects["Ingress"], "spec", "rules", 0)
	if at(rule, "host") != "bot.example.com" {
		t.Errorf("the ingress answers for %v", at(rule, "host"))
	}
	for _, path := range at(rule, "http", "paths").([]any) {
		if p := at(path, "path").(string); (p != "/telegram/" || webhooks()) && !served(t, p) {
			t.Errorf("the ingress passes %s on, which the program does not serve", p)
		}
	}
}

func kinds(objects map[string]map[string]any) map[string]any {
	all := map[string]any{}
	for kind := range objects {
		all[kind] = nil
	}
	return all
}

func TestChartIsOneReplicaWithAVolume(t *testing.T) {
	c := theChart(t)
	objects := c.render(single()...)
	if got := keysOf(any(kinds(objects))); !slices.Equal(got, []string{"Deployment", "PersistentVolumeClaim", "Service"}) {
		t.Errorf("it makes %q", got)
	}
	if at(objects["Service"], "spec", "publishNotReadyAddresses") != true {
		t.Error("webhooks and pages wait for the platforms, although there is no other replica")
	}
	if cfg := podIsSafe(t, objects["Deployment"]); cfg.Store.Shared() {
		t.Errorf("the store is %s", cfg.Store)
	}
	spec := at(objects["Deployment"], "spec")
	claim := at(spec, "template", "spec", "volumes", 0, "persistentVolumeClaim", "claimName")
	if at(spec, "replicas") != 1 || at(spec, "strategy", "type") != "Recreate" || claim != at(objects["PersistentVolumeClaim"], "metadata", "name") {
		t.Errorf("%v replicas, %v, volume %v", at(spec, "replicas"), at(spec, "strategy"), claim)
	}
}

// TestChartKeepsLargeNumbers of a values file, which Helm reads as fractions.
func TestChartKeepsLargeNumbers(t *testing.T) {
	c := theChart(t)
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("settings: {ONECLAW_BUDGET_TOTAL_TOKENS: 12000000, ONECLAW_BUDGET_MONTH_USD: 0.5, ONECLAW_PREVIEWS: false, OPENAI_MODEL: \"007\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := podIsSafe(t, c.render("--set", sharedStore, "--values", values)["Deployment"])
	if cfg.Budget.TotalTokens != 12_000_000 || cfg.Budget.MonthUSD != 0.5 || cfg.Previews || cfg.Model.Name != "007" {
		t.Errorf("the program gets %+v, previews %v, model %s", cfg.Budget, cfg.Previews, cfg.Model.Name)
	}
}

// podIsSafe checks what holds for each way of running the program, and returns the settings
// that it would have.
func podIsSafe(t *testing.T, deployment map[string]any) config.Config {
	t.Helper()
	pod := at(deployment, "spec", "template", "spec")
	container := at(pod, "containers", 0)
	for what, want := range map[string][3]any{
		"service links": {at(pod, "enableServiceLinks"), false}, "the token of the cluster": {at(pod, "automountServiceAccountToken"), false},
		"root": {at(pod, "securityContext", "runAsNonRoot"), true}, "user of the image": {at(pod, "securityContext", "runAsUser"), 65532},
		"system calls": {at(pod, "securityContext", "seccompProfile", "type"), "RuntimeDefault"},
		"root system":  {at(container, "securityContext", "readOnlyRootFilesystem"), true},
		"privileges":   {at(container, "securityContext", "allowPrivilegeEscalation"), false},
		"capabilities": {at(container, "securityContext", "capabilities", "drop", 0), "ALL"},
		"port":         {fmt.Sprint(":", at(container, "ports", 0, "containerPort")), imagePort(t)},
		"memory":       {at(container, "resources", "limits", "memory"), "1Gi"},
	} {
		if want[0] != want[1] {
			t.Errorf("%s: %v, want %v", what, want[0], want[1])
		}
	}
	if grace, _ := at(pod, "terminationGracePeriodSeconds").(int); time.Duration(grace)*time.Second <= enough {
		t.Errorf("it is killed after %d s, but may take %s to end", grace, enough)
	}
	for probe, path := range map[string]string{"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"} {
		get := at(container, probe, "httpGet")
		if at(get, "path") != path || at(get, "port") != at(container, "ports", 0, "name") || !served(t, path) {
			t.Errorf("%s asks for %v", probe, get)
		}
	}
	period, _ := at(container, "startupProbe", "periodSeconds").(int)
	if tries, _ := at(container, "startupProbe", "failureThreshold").(int); tries*period < 600 {
		t.Errorf("a start that rewrites the database is killed after %d s", tries*period)
	}
	environment, secrets := map[string]string{}, "/run/secrets/oneclaw"
	for _, one := range at(container, "env").([]any) {
		name := at(one, "name").(string)
		if _, twice := environment[name]; twice {
			t.Errorf("%s is set twice", name)
		}
		environment[name] = fmt.Sprint(at(one, "value"))
	}
	var mounted []string
	for _, volume := range at(pod, "volumes").([]any) {
		for n := range 20 {
			if path, ok := at(volume, "secret", "items", n, "path").(string); ok {
				mounted = append(mounted, secrets+"/"+path)
			}
		}
	}
	var wanted []string
	for name, value := range environment {
		if strings.HasSuffix(name, "_FILE") {
			wanted = append(wanted, value)
		}
	}
	slices.Sort(mounted)
	slices.Sort(wanted)
	if !slices.Equal(mounted, wanted) {
		t.Errorf("mounted are %q, read are %q", mounted, wanted)
	}
	delete(environment, config.FileVariable) // it is not here
	return accepted(t, environment, secrets)
}

// webhooks reports whether Telegram can post to the program.
func webhooks() bool { return slices.Contains(config.Variables(false), "ONECLAW_TELEGRAM_WEBHOOK") }

// served reports whether the program has something at a path or below it.
func served(t *testing.T, path string) (is bool) {
	t.Helper()
	w := newHarness(t, nil)
	var environ []string
	for name, value := range w.env {
		environ = append(environ, name+"="+value)
	}
	environ = append(environ, "SLACK_BOT_TOKEN=xoxb-1", "SLACK_SIGNING_SECRET=0123456789abcdef0123456789abcdef")
	if webhooks() {
		environ = append(environ, "ONECLAW_TELEGRAM_WEBHOOK=true", "ONECLAW_PUBLIC_URL=https://bot.example.com")
	}
	cfg, err := config.Load("", environ)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = app.WithBot(ended, cfg, slog.New(slog.DiscardHandler), func(b *app.Bot) error {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			_, pattern := b.Handler().(*http.ServeMux).Handler(httptest.NewRequestWithContext(t.Context(), method, path, nil))
			is = is || pattern != ""
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// TestChartRefusesWhatDoesNotGoTogether: each with a sentence.
func TestChartRefusesWhatDoesNotGoTogether(t *testing.T) {
	c := theChart(t)
	wrong := map[string][]string{
		"values-single.yaml":        nil,
		"one process opens":         {"--set", "store=bolt"},
		"needs a volume":            append(single(), "--set", "persistence.enabled=false"),
		"persistence is for one":    {"--set", sharedStore, "--set", "persistence.enabled=true"},
		"lacks ONECLAW_SECRET_KEY":  {"--set", sharedStore, "--set-json", `secret.variables=["TELEGRAM_BOT_TOKEN"]`},
		"the ingress needs":         {"--set", sharedStore, "--set", "ingress.enabled=true"},
		"settings.ONECLAW_STORE_PA": {"--set", sharedStore, "--set", "settings.ONECLAW_STORE_PASSWORD=x"},
	}
	for _, name := range config.Variables(true) {
		if name != "ONECLAW_STORE" {
			wrong["settings."+name+" would stand"] = []string{"--set", sharedStore, "--set", "settings." + name + "=x"}
		}
	}
	for sentence, values := range wrong {
		out, err := c.run(append([]string{"template", "oneclaw", filepath.Join(deployFolder, "helm"), "--kube-version", "1.30"}, values...)...)
		if err == nil || !strings.Contains(out, sentence) {
			t.Errorf("%q: %v: %.300s", values, err, out)
		}
	}
	// What is no secret may be set, whatever it is called.
	values := []string{"--set", sharedStore}
	for _, name := range config.Variables(false) {
		if !slices.Contains(config.Variables(true), name) && name != "ONECLAW_LISTEN" {
			values = append(values, "--set", "settings."+name+"=x")
		}
	}
	c.render(values...)
}
