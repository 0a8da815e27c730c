package deploy

import (
	"cmp"
	"math"
	"time"

	"pitot/internal/sim"
	"pitot/internal/sim/catalogue"
)

// Efficiency holds the shares of its datasheet's numbers that an accelerator reaches, and the
// further costs of a step. Zero stands for the catalogue's value for the deployment's data types
// until [Deployment.Complete] has filled it in.
type Efficiency struct {
	Bandwidth       float64 // share of the memory's bandwidth that reading weights reaches
	Compute         float64 // share of the dense peak that large matrix products reach
	PromptAttention float64 // share of it that the attention of prompts reaches
	Attention       float64 // factor on the share of the bandwidth that reading KV for answers reaches, 1 unless fitted

	Scale         float64       // factor on everything below and above, 1 unless fitted
	PerStep       time.Duration // sampling, the host's part that nothing hides; negative until filled in from the host's class
	PerRequest    time.Duration // of a step, for each row; likewise
	PerPrefill    time.Duration // of a step with stretches of prompts
	PerPrompt     time.Duration // of each stretch in it: tokens that kernels pad it with, what the host does for it; 0 unless fitted
	PerLaunch     time.Duration // of a layer that is in no CUDA graph: the host launches its kernels one by one, which they hide if they take longer
	PerLayer      time.Duration // of a layer, kernels that are neither products, attention nor collectives
	Collective    time.Duration // latency of one all-reduce
	CollectiveGBs float64       // 10⁹ bytes of a message in a second of an all-reduce
	Exchange      time.Duration // latency of gathering tokens from engines that divide experts, and of giving them back
	ExchangeGBs   float64       // 10⁹ bytes in a second of these two together
}

const (
	defaultPerLayer = 10 * time.Microsecond
	// What a step with prompts takes more of each layer. FlashInfer makes plans besides.
	promptsPerLayer    = 50 * time.Microsecond
	flashInferPerLayer = 200 * time.Microsecond
	// The host's launches of a layer's kernels one by one, and of its attention alone.
	launchPerLayer     = 500 * time.Microsecond
	moreLaunchPerLayer = 800 * time.Microsecond // with FlashInfer, or experts
	attentionLaunch    = 0.2                    // of those

	fixedScales = 0.5 // of the time to quantise activations, where the largest need not be found first

	elementwise           = 0.8 // share of the bandwidth that what lies between products reaches
	blackwellsElementwise = 0.45
)

// Measured says whether the kernels of the accelerator were measured, or what is
// usual stands in for them.
func (d *Deployment) Measured() bool {
	return len(catalogue.KernelsOf(d.Accelerator.Name).Products) > 0
}

// kernelType names the measured products and experts of a data type of weights.
func kernelType(dtype string) string {
	switch dtype {
	case "fp16", "fp32":
		return "bf16"
	case "w8a16":
		return "int4" // both are unpacked to 16 bits
	case "int8":
		return "fp8" // both have activations quantised, and twice the rate of 16 bits
	}
	return dtype
}

// kernels are the constants of a deployment's kernels, measured or usual.
type kernels struct {
	product, wide catalogue.Product // of the weights' type, and of 16 bits
	experts       catalogue.Experts
	decode        catalogue.Decode
	prompt        catalogue.Prompt
	latent        catalogue.LatentDecode
	delta         catalogue.Delta
	reduce        catalogue.Reduce
	exchange      catalogue.Reduce // between engines that divide experts
}

// kernels finds them.
func (d *Deployment) kernels() (k kernels) {
	measured, usual := catalogue.KernelsOf(d.Accelerator.Name), catalogue.UsualKernels()
	kind, kv := kernelType(d.DType), kernelType(d.KVDType)
	product := func(kind string) catalogue.Product {
		if p, ok := measured.Products[kind]; ok {
			return p
		}
		p := usual.Products[kind]
		if r := d.Accelerator.Reached; kind == "bf16" || kind == "int4" {
			p.Bandwidth, p.Compute = cmp.Or(r.Bandwidth, p.Bandwidth), cmp.Or(r.Compute, p.Compute)
		}
		return p
	}
	k.product, k.wide = product(kind), product("bf16")
	k.experts = ofType(measured.Experts, usual.Experts, kernelType(d.expertType()))
	k.decode = ofType(measured.Decode, usual.Decode, kv)
	k.prompt = ofType(measured.Prompt, usual.Prompt, kv)
	k.latent = ofType(measured.Latent, usual.Latent, kv)
	k.latent.Floor = cmp.Or(k.latent.Floor, usual.Latent["any"].Floor)
	k.delta = cmp.Or(measured.Delta, usual.Delta)
	k.reduce = d.reduceConstants(&measured, d.TensorParallel)
	if d.IsLockstep() {
		k.exchange = d.exchangeConstants(&measured)
	}
	return k
}

// ofType are the constants of a data type as measured, else the usual ones of any.
func ofType[T any](measured, usual map[string]T, kind string) T {
	if x, ok := measured[kind]; ok {
		return x
	}
	return usual["any"]
}

// fillEfficiency sets what was left open to what the catalogue has.
func (d *Deployment) fillEfficiency() {
	k, e := d.kernels(), &d.Efficiency
	e.Bandwidth = cmp.Or(e.Bandwidth, k.product.Bandwidth)
	e.Compute = cmp.Or(e.Compute, k.product.Compute)
	e.PromptAttention = cmp.Or(e.PromptAttention, k.prompt.Compute)
	host := d.host.Overhead
	if !d.Settings.AsyncScheduling {
		host.Step, host.Row = host.Step+d.host.Serial.Step, host.Row+d.host.Serial.Row
	}
	perStep, perRow := host.Durations()
	if e.PerStep < 0 {
		e.PerStep = perStep
	}
	if e.PerRequest < 0 {
		e.PerRequest = perRow
	}
	each, launch := promptsPerLayer, launchPerLayer
	if d.Accelerator.Attention == catalogue.FlashInfer {
		each, launch = flashInferPerLayer, moreLaunchPerLayer
	}
	if d.Model.Experts > 0 {
		launch = moreLaunchPerLayer
	}
	if e.PerPrefill < 0 {
		e.PerPrefill = time.Duration(d.Model.Layers) * each
	}
	if e.PerLaunch < 0 {
		e.PerLaunch = launch
		if d.Accelerator.Name == "cpu" {
			e.PerLaunch = 0 // what is launched runs there
		}
	}
	e.Collective = cmp.Or(e.Collective, time.Duration(k.reduce.Latency*1e3))
	e.CollectiveGBs = cmp.Or(e.CollectiveGBs, k.reduce.GBs)
	e.Exchange = cmp.Or(e.Exchange, time.Duration(k.exchange.Latency*1e3))
	e.ExchangeGBs = cmp.Or(e.ExchangeGBs, k.exchange.GBs)
}

// Parts are a step's duration by what it is spent on, in seconds.
type Parts struct {
	Weights    float64 // matrix products of the layers, bound by reading weights or by computing
	Experts    float64 // those of the experts
	Head       float64 // computing logits
	Activation float64 // what else a layer does: norms, rotations, reading and writing activations
	Decode     float64 // attention of answers: reading the KV cache
	Prefill    float64 // attention of prompts
	Draft      float64 // all passes of the drafter
	Collective float64 // tensor parallelism
	Overhead   float64 // host and launches
}

// Total is their sum.
func (p Parts) Total() float64 {
	return p.Weights + p.Experts + p.Head + p.Activation + p.Decode + p.Prefill + p.Draft + p.Collective + p.Overhead
}

// hardware is a deployment in the units of the formulas: bytes, floating
// point operations and seconds, of one accelerator of the group. It is one engine's: what it
// reckoned last it keeps.
type hardware struct {
	e  Efficiency
	tp float64

	products []product // of all layers, one entry for those that are alike
	draft    product   // all products of a pass of the drafter, as one
	head     product
	expert   experts
	looks    []look // the layers by how they look back
	layers   float64
	other    struct{ floor, perToken float64 } // of all layers
	reduce   passing                           // all-reduces
	exchange passing                           // of tokens among engines that share the experts
	drafter  sim.Drafter
	engines  float64 // that share the experts, 0 of one

	graphs graphs
	launch float64 // s of the host to launch a step's kernels one by one

	last struct { // what [hardware.tokenParts] said
		known bool // something is kept
		of    [3]float64
		parts Parts
	}
}

// look is the attention of all layers of a kind.
type look struct {
	window float64 // tokens that they look back on, 0 for all

	decode  float64 // s, of a step with answers
	read    float64 // s for each token that answers look back on, to read what is kept of it
	compute float64 // s for each of them, to compute with it
	row     float64 // s for each row, states that are read and written

	prompt  float64 // s, of a step with prompts alone, of any with prompts where
	apart   bool    // kernels of their own compute them
	perPair float64 // s for each pair of tokens
	perNew  float64 // s for each token of a prompt
	serial  float64 // s for each token of the longest stretch of a prompt, where that is what is waited for
	matrix  float64 // s for each token of all, in its place
}

// attendedTokens returns the total number of tokens that n rows attend to, given the number of
// tokens before them.
func (l *look) attendedTokens(context, n float64) float64 {
	if l.window == 0 {
		return context
	}
	return min(context, n*l.window)
}

// answerTime is the time of so many rows that look back on so much in all.
func (l *look) answerTime(rows, context float64) float64 {
	back := l.attendedTokens(context, rows)
	each := l.read
	if l.compute > 0 {
		each = cubicNorm(l.read, l.compute)
	}
	return l.decode + back*each + rows*l.row
}

// chunkTime is the time of a stretch of a prompt: n tokens behind others.
func (l *look) chunkTime(n, context float64) float64 {
	return max(n*l.attendedTokens(context+n/2, 1)*l.perPair+n*l.perNew, (l.attendedTokens(context, 1)+n)*l.read) + l.row
}

// stateTime is the time in which prompts go through states, all of them at once.
func (l *look) stateTime(prompts []sim.Chunk) float64 {
	if l.serial == 0 {
		return 0
	}
	longest, all := 0, 0
	for _, c := range prompts {
		longest, all = max(longest, c.New), all+c.New
	}
	return cubicNorm(float64(longest)*l.serial, float64(all)*l.matrix)
}

// product is a matrix product: n of them in a step.
type product struct {
	n        float64
	floor    float64 // s
	read     float64 // s, the weights
	compute  float64 // s, for each row
	quantise float64 // s, for each row, where a kernel of its own does so
}

// secondsFor returns the seconds that all the products take for the given number of rows.
func (p *product) secondsFor(rows float64) float64 {
	if p.n == 0 {
		return 0
	}
	return p.n * (p.floor + cubicNorm(p.read, p.compute*rows) + p.quantise*rows)
}

// experts are those of all layers.
type experts struct {
	n               float64 // layers
	floor           float64 // s, of a layer
	count, perToken float64 // experts of an accelerator, and how many of them a token goes through
	uneven          float64 // standard deviations by which the accelerator with most is above their mean, where each has experts of its own
	each            float64 // s, for each expert that is touched
	read            float64 // s, its weights
	compute, move   float64 // s for each token
}

// expertsRead returns the number of a layer's experts that a step with the given number of tokens
// reads. With E experts and k experts for each token, T tokens touch E·(1 − (1 − k/E)^T) if they
// choose independently.
func (x *experts) expertsRead(tokens float64) float64 {
	if x.count == 0 {
		return 0
	}
	return x.count * (1 - math.Pow(1-x.perToken/x.count, tokens))
}

// mostTouched is touched of the accelerator with most, for which the others wait.
func (x *experts) mostTouched(tokens float64) float64 {
	mean := x.expertsRead(tokens)
	if x.uneven == 0 || x.count == 0 {
		return mean
	}
	return min(mean+x.uneven*math.Sqrt(mean*(1-mean/x.count)), x.count)
}

func (x *experts) secondsFor(tokens float64) float64 {
	if x.n == 0 {
		return 0
	}
	touched := x.mostTouched(tokens)
	return x.n * (x.floor + touched*x.each + cubicNorm(touched*x.read, x.compute*tokens) + x.move*tokens)
}

// cubicNorm is the 3-norm of two bounds, which is how measured kernels pass from one
// to the other.
func cubicNorm(a, b float64) float64 { return math.Cbrt(a*a*a + b*b*b) }

// hardware puts the deployment into the formulas' units.
func (d *Deployment) hardware() *hardware {
	m, e := &d.Model, d.Efficiency
	tp, layers := float64(d.TensorParallel), float64(m.Layers)
	k := d.kernels()
	datasheet := d.Accelerator.BandwidthGBs * 1e9
	wide := d.Accelerator.TFLOPS["bf16"] * 1e12 // operations/s in 16 bits
	hidden := float64(m.Hidden)
	h := &hardware{e: e, tp: tp, layers: layers, drafter: d.Settings.Drafter}

	// What is set or fitted of the weights' type holds for 16 bits in proportion.
	weight, peak := bytesOf[d.DType], d.densePeak()
	floor, quantise := k.wide.Floor, 0.0
	switch blackwell := d.Accelerator.Attention == catalogue.FlashInfer; {
	case d.DType == "fp4": // with the product of gate and up, or by a kernel of its own
		floor, quantise = (k.wide.Floor+k.product.Floor)/2, 3/(k.product.Quantise*datasheet)
	case d.DType == "fp8" && blackwell: // with the all-reduce and the norm before, of small messages
		quantise = fixedScales * 3 / (k.product.Quantise * datasheet)
	case d.DType == "fp8", d.DType == "fp8_block":
		floor = k.product.Floor
	}
	narrow := func(n, rows, columns float64) product {
		return product{n: n, floor: floor * 1e-6, read: rows * columns * weight / (datasheet * e.Bandwidth), compute: 2 * rows * columns / (peak * e.Compute), quantise: quantise * columns}
	}
	broad := func(n, rows, columns float64) product {
		bandwidth, compute := k.wide.Bandwidth*e.Bandwidth/k.product.Bandwidth, k.wide.Compute*e.Compute/k.product.Compute
		return product{n: n, floor: k.wide.Floor * 1e-6, read: rows * columns * max(weight, 2) / (datasheet * bandwidth), compute: 2 * rows * columns / (wide * compute)}
	}
	dense := layers
	if m.Experts > 0 {
		dense = float64(m.DenseLayers)
	}
	// part returns the kind of matrix product for the data type of a part of the layers.
	part := func(p catalogue.Part) func(n, rows, columns float64) product {
		if d.partType(p) != d.DType {
			return broad
		}
		return narrow
	}
	feed := func(n, width float64) []product {
		if n == 0 || width == 0 {
			return nil
		}
		by := part(catalogue.InFeedForward)
		return []product{by(n, 2*width/tp, hidden), by(n, hidden, width/tp)}
	}
	for _, a := range m.AttentionKinds() {
		h.addAttention(d, &a, &k)
		for i, p := range a.MatMuls(m.Hidden) {
			by, rows := part(catalogue.InAttention), float64(p.Rows)
			if p.Wide {
				by = broad
			}
			if !p.Whole {
				rows /= tp
			}
			if i == 0 && a.KVHeads > 0 { // heads that several accelerators have
				rows += 2 * max(1-float64(a.KVHeads)/tp, 0) * float64(a.HeadDim)
			}
			if p.Rows > 0 && p.Columns > 0 {
				h.products = append(h.products, by(float64(a.Layers), rows, float64(p.Columns)))
			}
		}
	}
	h.products = append(h.products, feed(dense, float64(m.Intermediate))...)
	width := float64(m.Intermediate)
	if moe := layers - dense; moe > 0 {
		h.products = append(h.products, broad(moe, float64(m.Experts), hidden))
		h.products = append(h.products, feed(moe, float64(m.SharedExpertIntermediate))...)
		one, weight, peak := float64(m.ExpertWeights())/tp, bytesOf[d.expertType()], peak
		whole, own := 1.0, 1.0 // accelerators that share an expert, and parts that the experts are divided into
		if d.ExpertParallel {
			one, own = float64(m.ExpertWeights()), d.expertSharers()
		} else {
			whole = tp
		}
		if d.expertType() == "mxfp4" {
			peak = wide // unpacked
		}
		// What is set or fitted of the weights' type holds for experts in proportion too.
		bandwidth, compute := k.experts.Bandwidth*e.Bandwidth/k.product.Bandwidth, k.experts.Compute*e.Compute/k.product.Compute
		h.expert = experts{
			n: moe, floor: k.experts.Floor * 1e-6, count: float64(m.Experts) / own, perToken: float64(m.ExpertsPerToken) / own, each: k.experts.PerExpert * 1e-6,
			read: one * weight / (datasheet * bandwidth), compute: 2 * float64(m.ExpertsPerToken) / own * one / (peak * compute),
			move: 2 * float64(m.ExpertsPerToken) / own * (2*hidden + 3*float64(m.MoEIntermediate)/whole) / (datasheet * k.experts.Activations),
		}
		if own > 1 { // the largest of as many normal numbers (Blom, 1958)
			h.expert.uneven = math.Sqrt2 * math.Erfinv(2*(own-0.375)/(own+0.25)-1)
		}
		width = float64(m.MoEIntermediate*m.ExpertsPerToken + m.SharedExpertIntermediate)
	}
	h.head = broad(1, float64(m.Vocab)/tp, hidden)
	h.draft = broad(1, d.drafterWeights()/tp, 1)

	h.graphs, h.launch = d.graphs, layers*e.PerLaunch.Seconds()
	h.graphs.size = d.GraphSize()
	h.other.floor = layers * e.PerLayer.Seconds()
	between := elementwise
	if d.Accelerator.Link.Kind == "nvlink5" {
		between = blackwellsElementwise
	}
	h.other.perToken = layers * (28*hidden + 6*width/tp) / (datasheet * between)
	if d.IsLockstep() {
		h.engines = float64(d.DataParallel)
		h.exchange = newPassing(layers-dense, e.Exchange, e.ExchangeGBs, hidden, &k.exchange)
	}
	if tp > 1 { // two all-reduces in each layer, where experts are exchanged one
		h.reduce = newPassing(2*layers-h.exchange.n, e.Collective, e.CollectiveGBs, hidden, &k.reduce)
	}
	return h
}

// addAttention works out how the layers of a kind look back.
func (h *hardware) addAttention(d *Deployment, a *catalogue.Attention, k *kernels) {
	e := &d.Efficiency
	bandwidth, wide := d.Accelerator.BandwidthGBs*1e9, d.Accelerator.TFLOPS["bf16"]*1e12
	layers, kept := float64(a.Layers), d.layerBytesPerToken(a)
	var l look
	switch a.Kind {
	case catalogue.Latent:
		heads := float64(a.Heads) / h.tp
		l.apart = true
		l.decode = layers * k.latent.Floor * 1e-6
		l.read = kept / (bandwidth * k.latent.Bandwidth * e.Attention)
		l.compute = layers * 2 * heads * float64(2*a.KVRank+a.RopeDim) / (wide * k.latent.Compute * e.Attention)
		l.prompt = layers * k.prompt.Floor * 1e-6
		l.perPair = layers * 2 * heads * float64(a.NopeDim+a.RopeDim+a.ValueDim) / (wide * e.PromptAttention)
		l.perNew = layers * 2 * heads * float64(a.NopeDim+a.RopeDim+a.ValueDim) / (bandwidth * k.prompt.Bandwidth)
	case catalogue.Linear:
		matrix, conv := a.StateSize()
		share := layers / float64(min(d.TensorParallel, a.MaxShards()))
		l.apart = true
		l.decode = layers * k.delta.Floor * 1e-6
		l.row = 2 * share * (4*float64(matrix) + 2*float64(conv)) / (bandwidth * k.delta.Bandwidth)
		l.prompt = layers * k.delta.PromptFloor * 1e-6
		l.serial, l.matrix = layers*k.delta.Serial*1e-9, share*8*float64(matrix)/(wide*k.delta.Compute)
		l.perNew = share * 4 * float64(a.Channels()) / (bandwidth * k.delta.PromptBandwidth)
	default:
		l.window = float64(a.Window)
		l.decode = layers * k.decode.Floor * 1e-6
		l.read = kept / (bandwidth * k.decode.Bandwidth * e.Attention)
		l.prompt = layers * k.prompt.Floor * 1e-6
		width := float64(a.Heads*a.HeadDim) / h.tp
		l.perPair = layers * 4 * width / (wide * e.PromptAttention)
		l.perNew = layers * 4 * width / (bandwidth * k.prompt.Bandwidth)
	}
	h.looks = append(h.looks, l)
}

// Step implements [sim.Cost].
func (h *hardware) Step(b *sim.Batch) time.Duration {
	return stepDuration(h.parts(b).Total())
}

// longestStep is longer than any step of a deployment that was checked.
const longestStep = 24 * time.Hour

// stepDuration is a duration of so many seconds, and of [longestStep] at most: more
// would not fit into the clock's 63 bits.
func stepDuration(seconds float64) time.Duration {
	return time.Duration(min(seconds, longestStep.Seconds()) * 1e9)
}

// parts is the step-time model: the sum of a step's kernels, each by the formula
// that [catalogue.Kernels] has constants of, and what the host takes. Attention
// of answers reads their whole KV cache, of prompts it computes 4·heads·dim
// operations for each pair of tokens; one kernel does both.
// Of engines in lock step it is a step in which all have such a batch.
func (h *hardware) parts(b *sim.Batch) Parts {
	return h.partsAmong(b, float64(b.Tokens)*max(h.engines, 1))
}

// partsAmong are those of one engine, while its experts have so many tokens of all.
func (h *hardware) partsAmong(b *sim.Batch, all float64) Parts {
	t := float64(b.Tokens)
	p := h.tokenParts(t, all, float64(b.Logits))
	p.Activation = h.other.floor + t*h.other.perToken
	for i := range h.looks {
		l := &h.looks[i]
		if b.Decodes > 0 {
			p.Decode += l.answerTime(float64(b.Decodes), float64(b.DecodeContext))
		}
		if len(b.Prefills) > 0 {
			p.Prefill += l.stateTime(b.Prefills)
			if b.Decodes == 0 || l.apart {
				p.Prefill += l.prompt
			}
		}
		for _, c := range b.Prefills {
			p.Prefill += l.chunkTime(float64(c.New), float64(c.Context))
		}
	}
	p.Draft = h.draftTime(b, (p.Decode+p.Prefill+p.Collective)/h.layers)
	kernels := p.Total()
	p.Overhead = h.e.PerStep.Seconds() + float64(b.Requests)*h.e.PerRequest.Seconds() + max(h.launchTime(b)-kernels, 0)
	if len(b.Prefills) > 0 {
		p.Overhead += h.e.PerPrefill.Seconds() + float64(len(b.Prefills))*h.e.PerPrompt.Seconds()
	}
	return p.scaledBy(h.e.Scale)
}

// tokenParts are the parts that hang on numbers of tokens alone, wherever in their requests these
// stand: of answers step after step has as many, so the last are kept.
func (h *hardware) tokenParts(tokens, all, logits float64) Parts {
	if of := [3]float64{tokens, all, logits}; !h.last.known || h.last.of != of {
		var p Parts
		for i := range h.products {
			p.Weights += h.products[i].secondsFor(tokens)
		}
		p.Experts = h.expert.secondsFor(all)
		p.Head = h.head.secondsFor(logits)
		p.Collective = h.reduce.secondsFor(tokens) + h.exchange.secondsFor(all)
		h.last.known, h.last.of, h.last.parts = true, of, p
	}
	return h.last.parts
}

func (p Parts) scaledBy(f float64) Parts {
	return Parts{p.Weights * f, p.Experts * f, p.Head * f, p.Activation * f, p.Decode * f, p.Prefill * f, p.Draft * f, p.Collective * f, p.Overhead * f}
}
