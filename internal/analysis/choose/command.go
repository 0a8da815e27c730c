package choose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pitot/internal/say"
	"pitot/internal/sim/catalogue"
	"pitot/internal/sim/deploy"
	"pitot/internal/sim/engine"
)

// The lines that start a deployment and verify what was said of it.

// ServeCommand is the command that starts one engine of the option, or all of them where one
// machine holds them.
func (o *Option) ServeCommand() []string {
	d := o.candidate.Deployment
	name := d.Model.HF
	if name == "" {
		name = d.Model.Name
	}
	if o.Quantised && o.DType != "fp8" { // engines make that of the published weights alone
		name = "CHECKPOINT-OF-" + name + "-IN-" + strings.ToUpper(o.DType)
	}
	kind := o.candidate.Engine
	line := kind.Command(name)
	flag := func(name, value string) {
		line = append(line, "--"+strings.ReplaceAll(name, "_", "-"), value)
	}
	if o.TensorParallel > 1 {
		flag(cmp.Or(kind.TensorParallel, "tensor_parallel_size"), fmt.Sprint(o.TensorParallel))
	}
	if o.InOneMachine() {
		flag(cmp.Or(kind.DataParallel, "data_parallel_size"), fmt.Sprint(o.Engines))
	}
	switch o.DType {
	case d.Model.DType:
	case "fp8":
		flag("quantization", "fp8")
	case "bf16":
		flag("dtype", "bfloat16")
	case "fp16":
		flag("dtype", "float16")
	case "fp32":
		flag("dtype", "float32")
	}
	for _, s := range slices.Concat(o.Settings, o.candidate.common) {
		switch {
		case deploy.OfTwin(s.Name):
		case s.Value == "true" || s.Value == "false" && kind.OnlyTrue: // whose flags are only ever given
			if s.Value == "true" {
				line = append(line, "--"+strings.ReplaceAll(s.Name, "_", "-"))
			}
		case s.Value == "false":
			line = append(line, "--no-"+strings.ReplaceAll(s.Name, "_", "-"))
		default:
			flag(s.Name, s.Value)
		}
	}
	return line
}

// IsBaseModel says that the checkpoint is of a model that was not trained for chats, as far as its
// name tells.
func (o *Option) IsBaseModel() bool {
	name := strings.ToLower(o.candidate.Deployment.Model.HF)
	for _, mark := range []string{"instruct", "-it", "chat", "qwen3", "gpt-oss", "deepseek-v3", "minimax", "kimi"} {
		if strings.Contains(name, mark) {
			return false
		}
	}
	return name != ""
}

// InOneMachine says that there are several engines, which one machine holds and vLLM
// itself shares the requests out to.
func (o *Option) InOneMachine() bool {
	return o.Engines > 1 && o.GPUs <= o.candidate.Offer.Most && o.candidate.Engine.Shares && !o.candidate.converses
}

// TargetSpec is the option on the twin, as pitot find takes it: all its engines, or one where they
// could not be put together.
func (o *Option) TargetSpec() string {
	if o.Whole != nil {
		return "sim:" + o.Whole.Spec
	}
	return "sim:" + o.Spec
}

// VerifyCommand is the command that measures what was reckoned with: at a server, or on the twin,
// which knows what its GPUs cost.
func (x *Choice) VerifyCommand(o *Option, server string) []string {
	target := server
	if target == "" {
		target = o.TargetSpec()
	}
	line := append([]string{"pitot", "find", target, "--slo", x.SLO}, x.Asked...)
	if x.Rate > 0 {
		rate := say.Exact(x.Rate)
		if server == "" && o.Whole == nil && o.Engines > 1 { // one engine is asked for its part
			rate = fmt.Sprintf("%.3g", x.Rate/float64(o.Engines))
		}
		line = append(line, "--at", rate)
	}
	if server != "" && o.PerHour > 0 {
		line = append(line, "--gpus", fmt.Sprint(o.GPUs), "--gpu-price", say.Exact(o.candidate.Offer.USDPerHour))
	}
	return line
}

// RouterCommand is the command that starts what shares the requests out to an option's engines,
// nil where nothing has to: https://github.com/vllm-project/router (its README at 03e9af5) and
// https://docs.sglang.io/advanced_features/sgl_model_gateway.html, which it is a fork of and
// whose flags it has.
func (o *Option) RouterCommand(engines ...string) []string {
	if o.Engines < 2 || o.InOneMachine() {
		return nil
	}
	line := append(slices.Clone(o.routerEngine().Router), "--policy")
	switch {
	case o.router.Policy == Session: // of vllm-router, which goes by X-Session-ID (its docs/load_balancing)
		line = append(line, "consistent_hash")
	case o.candidate.converses:
		line = append(line, CacheAware)
	default:
		line = append(line, PowerOfTwo)
	}
	if n := o.router.BalanceAbsThreshold; n > 0 {
		line = append(line, "--balance-abs-threshold", fmt.Sprint(n))
	}
	return append(append(line, "--host", "0.0.0.0", "--port", "8000"), engines...)
}

// routerEngine is the engine whose router is in front of the option's engines: its own, where it
// has one.
func (o *Option) routerEngine() *engine.Kind {
	if k := o.candidate.Engine; len(k.Router) > 0 {
		return k
	}
	return usualEngine
}

// WorkerURLs returns the flags that name the engines to a router, one host each.
func (o *Option) WorkerURLs() (flags []string) {
	flags = []string{"--worker-urls"}
	for i := range min(o.Engines, mostListed) {
		flags = append(flags, fmt.Sprintf("http://HOST%d:8000", i+1))
	}
	if o.Engines > mostListed {
		flags = append(flags, "…")
	}
	return flags
}

const mostListed = 4 // engines that a line names

// Manifest is a Kubernetes Deployment of the option's engines behind a Service, and a router
// where there are several that it has to share requests out to.
func (o *Option) Manifest() string {
	var b strings.Builder
	image := o.candidate.Engine.Image
	name := o.Engine + "-" + strings.NewReplacer(".", "-", "_", "-", "/", "-").Replace(o.candidate.Deployment.Model.Name)
	name = strings.Trim(strings.ToLower(name[:min(len(name), 50)]), "-")
	replicas, gpus := o.Engines, o.TensorParallel
	if o.InOneMachine() {
		replicas, gpus = 1, o.GPUs
	}
	fmt.Fprintf(&b, "# %s: %d of %s\n", o.Spec, replicas, o.candidate.Offer.Accelerator.Name)
	fmt.Fprintf(&b, `apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: %[2]d
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      %[5]s
      containers:
        - name: %[3]s
          image: %[4]s:latest # take the version that you verify
          command:
`, name, replicas, o.Engine, image, nodeSelector(&o.candidate.Offer.Accelerator))
	for _, word := range o.ServeCommand() {
		fmt.Fprintf(&b, "            - %q\n", word)
	}
	fmt.Fprintf(&b, `          env: # of models that ask for a licence
            - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf-token, key: token, optional: true}}}
          ports:
            - {name: http, containerPort: 8000}
          resources:
            limits: {%s: %d}
          readinessProbe:
            httpGet: {path: /health, port: http}
            periodSeconds: 5
          startupProbe: # loading weights takes minutes
            httpGet: {path: /health, port: http}
            periodSeconds: 10
            failureThreshold: 180
          volumeMounts:
            - {name: shm, mountPath: /dev/shm} # of the workers of one engine
      volumes:
        - name: shm
          emptyDir: {medium: Memory, sizeLimit: 8Gi}
---
`, resourceOf(o.candidate.Offer.Accelerator.Vendor), gpus)
	to := name
	if router := o.RouterCommand(); router != nil {
		to = name + "-router"
		b.WriteString(o.routerManifest(to, name))
	}
	fmt.Fprintf(&b, `apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  selector: {app: %[2]s}
  ports:
    - {name: http, port: 8000, targetPort: http}
`, name, to)
	return b.String()
}

// routerManifest is the router of that name in front of the pods of an app, which it finds by
// asking Kubernetes: that takes the right to see them.
func (o *Option) routerManifest(name, app string) string {
	start := "pip install --quiet " + o.routerEngine().RouterPackage + " && exec " + strings.Join(o.RouterCommand("--service-discovery", "--selector", "app="+app, "--service-discovery-port", "8000", "--service-discovery-namespace", "$(NAMESPACE)"), " ")
	return fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata:
  name: %[1]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: %[1]s
rules:
  - {apiGroups: [""], resources: [pods], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: %[1]s
subjects:
  - {kind: ServiceAccount, name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: 1 # each router knows of its own requests alone
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      serviceAccountName: %[1]s
      containers:
        - name: router
          image: python:3.12-slim # or an image of yours with %[2]s in it
          env:
            - {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
          command: [sh, -c]
          args:
            - %[3]q
          ports:
            - {name: http, containerPort: 8000}
          readinessProbe:
            httpGet: {path: /health, port: http}
            periodSeconds: 5
---
`, name, o.routerEngine().RouterPackage, start)
}

// nodeSelector is a comment that says how nodes with an accelerator are told from others. Of
// NVIDIA's its feature discovery labels them with what the driver calls the GPU
// (https://github.com/NVIDIA/k8s-device-plugin/blob/main/docs/gpu-feature-discovery/README.md), of
// which the catalogue has a part that does not change: so it is not put to work unseen.
func nodeSelector(a *catalogue.Accelerator) string {
	if !strings.EqualFold(a.Vendor, "nvidia") || len(a.Device) == 0 {
		return "# nodeSelector: the label of your nodes with these GPUs"
	}
	device := strings.TrimPrefix(a.Device[0], "NVIDIA ")
	return "# nodeSelector: {nvidia.com/gpu.product: NVIDIA-" + strings.ReplaceAll(device, " ", "-") + "} # or as yours are called: kubectl get nodes -L nvidia.com/gpu.product"
}

// resourceOf returns the name that Kubernetes has for an accelerator of a maker.
func resourceOf(vendor string) string {
	switch strings.ToLower(vendor) {
	case "amd":
		return "amd.com/gpu"
	case "intel":
		return "gpu.intel.com/xe"
	}
	return "nvidia.com/gpu"
}
