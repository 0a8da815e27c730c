package workers

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"pitot/internal/config"
)

// Names that a manifest has for the objects that hold secrets.
const (
	tokenSecret = "-token" // key "token": of the NATS server
	keySecret   = "-key"   // keys by variable: of the target
)

// grace is the time that pods have to end, in seconds. A request is followed for ten minutes where
// nothing else is said.
const grace = 630

// WriteManifest writes the objects of Kubernetes that carry a command out with workers: an
// Indexed Job of them, a NATS server with JetStream where none is named, and a Job of the
// coordinator, which does what command says. No secret is in it.
func WriteManifest(w io.Writer, m *config.Manifest, command []string) error {
	y := &yamlWriter{w: w}
	nats := m.NATS
	if nats == "" {
		nats = fmt.Sprintf("nats://%s-nats:4222", m.Name)
	}
	y.writeLines(
		"# "+fmt.Sprintf("%d workers of %d CPUs each, and the coordinator.", m.Workers, m.CPUs),
		"#",
		"# Before it, once: the token of the NATS server, and the key of the target if it asks for one.",
		fmt.Sprintf("#   kubectl create secret generic %s%s --from-literal=token=t$(openssl rand -hex 16)", m.Name, tokenSecret),
		fmt.Sprintf("#   kubectl create secret generic %s%s --from-literal=%s=...", m.Name, keySecret, m.KeyEnv),
		"# Then, and until the run has ended:",
		"#   kubectl apply -f FILE",
		fmt.Sprintf("#   kubectl logs -f job/%s-run -c run", m.Name),
		"# The results come home from the pod of the coordinator, which stays a day for that:",
		fmt.Sprintf("#   kubectl cp $(kubectl get pod -l job-name=%s-run -o name | cut -d/ -f2):/runs ./runs -c home", m.Name),
		"#   kubectl delete -f FILE",
	)
	if m.NATS == "" {
		y.writeDocument(
			"apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: "+m.Name+"-nats", "data:", "  nats.conf: |",
			"    port: 4222", "    max_payload: 1MB", "    jetstream { store_dir: /data }", "    authorization { token: $FLEET_TOKEN }",
		)
		y.writeDocument(
			"apiVersion: v1", "kind: Service", "metadata:", "  name: "+m.Name+"-nats", "spec:", "  selector:", "    app: "+m.Name+"-nats",
			"  ports:", "    - name: nats", "      port: 4222", "      targetPort: 4222",
		)
		y.writeDocument(
			"apiVersion: apps/v1", "kind: Deployment", "metadata:", "  name: "+m.Name+"-nats", "spec:", "  replicas: 1",
			"  selector:", "    matchLabels:", "      app: "+m.Name+"-nats", "  template:", "    metadata:", "      labels:", "        app: "+m.Name+"-nats",
			"    spec:", "      enableServiceLinks: false", "      containers:", "        - name: nats", "          image: nats:2", "          args: [-c, /etc/nats/nats.conf]",
			"          ports:", "            - containerPort: 4222",
			"          env:", "            - name: FLEET_TOKEN", "              valueFrom:", "                secretKeyRef:", "                  name: "+m.Name+tokenSecret, "                  key: token",
			"          resources:", "            requests:", "              cpu: 2", "              memory: 1Gi", "            limits:", "              cpu: 2", "              memory: 1Gi",
			"          volumeMounts:", "            - name: conf", "              mountPath: /etc/nats", "            - name: data", "              mountPath: /data",
			"      volumes:", "        - name: conf", "          configMap:", "            name: "+m.Name+"-nats", "        - name: data", "          emptyDir:", "            sizeLimit: 4Gi",
		)
	}
	y.writeDocument("# Each worker is a pod of its own, in its place of the job, spread over the nodes: one that is",
		"# lost is not started again, since no other worker sends its part.",
		"apiVersion: batch/v1", "kind: Job", "metadata:", "  name: "+m.Name+"-workers", "spec:", "  completionMode: Indexed",
		fmt.Sprintf("  completions: %d", m.Workers), fmt.Sprintf("  parallelism: %d", m.Workers), "  backoffLimitPerIndex: 0",
		"  template:", "    metadata:", "      labels:", "        app: "+m.Name+"-workers", "    spec:", "      restartPolicy: Never", "      enableServiceLinks: false", fmt.Sprintf("      terminationGracePeriodSeconds: %d", grace),
		"      topologySpreadConstraints:", "        - maxSkew: 1", "          topologyKey: kubernetes.io/hostname", "          whenUnsatisfiable: ScheduleAnyway",
		"          labelSelector:", "            matchLabels:", "              app: "+m.Name+"-workers", "      containers:", "        - name: worker", "          image: "+quoteYAML(m.Image),
	)
	y.writeLines("          args: " + joinWords([]string{"worker", "--join", nats}))
	y.writeLines(secretVariables(m)...)
	cpus := fmt.Sprint(m.CPUs)
	y.writeLines("          resources:", "            requests:", "              cpu: "+cpus, "              memory: 2Gi", "            limits:", "              cpu: "+cpus, "              memory: 2Gi",
		"          volumeMounts:", "            - name: tmp", "              mountPath: /tmp", "      volumes:", "        - name: tmp", "          emptyDir: {}")
	y.writeDocument("apiVersion: batch/v1", "kind: Job", "metadata:", "  name: "+m.Name+"-run", "spec:", "  backoffLimit: 0", "  template:", "    spec:", "      restartPolicy: Never", "      enableServiceLinks: false",
		fmt.Sprintf("      terminationGracePeriodSeconds: %d", grace), "      securityContext:", "        fsGroup: 65532", "      containers:", "        - name: run", "          image: "+quoteYAML(m.Image))
	y.writeLines("          args: " + joinWords(append(append([]string{}, command...), "--fleet", fmt.Sprintf("%s?workers=%d", nats, m.Workers), "--out", "/runs/run")))
	y.writeLines(secretVariables(m)...)
	y.writeLines("          resources:", "            requests:", "              cpu: 2", "              memory: 4Gi", "            limits:", "              cpu: 2", "              memory: 4Gi",
		"          volumeMounts:", "            - name: runs", "              mountPath: /runs", "            - name: tmp", "              mountPath: /tmp",
		"        - name: home", "          image: busybox:1", "          args: [sleep, \"86400\"]", "          volumeMounts:", "            - name: runs", "              mountPath: /runs",
		"      volumes:", "        - name: runs", "          emptyDir: {}", "        - name: tmp", "          emptyDir: {}")
	return y.err
}

// secretVariables are the secrets of a container.
func secretVariables(m *config.Manifest) []string {
	return []string{
		"          env:", "            - name: " + config.TokenVariable, "              valueFrom:", "                secretKeyRef:", "                  name: " + m.Name + tokenSecret, "                  key: token",
		"            - name: " + m.KeyEnv, "              valueFrom:", "                secretKeyRef:", "                  name: " + m.Name + keySecret, "                  key: " + m.KeyEnv, "                  optional: true",
	}
}

// quoteYAML is text as YAML has it whatever is in it: JSON's strings are YAML's.
func quoteYAML(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// joinWords is a list in one line.
func joinWords(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, quoteYAML(w))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// yamlWriter writes lines, and keeps the first error.
type yamlWriter struct {
	w   io.Writer
	err error
}

func (y *yamlWriter) writeLines(lines ...string) {
	for _, l := range lines {
		if y.err == nil {
			_, y.err = fmt.Fprintln(y.w, l)
		}
	}
}

func (y *yamlWriter) writeDocument(lines ...string) {
	y.writeLines(append([]string{"---"}, lines...)...)
}
