package target

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitot/internal/client"
	"pitot/internal/client/api"
	"pitot/internal/clock"
	"pitot/internal/config"
	"pitot/internal/results/record"
	"pitot/internal/results/result"
	"pitot/internal/say"
	"pitot/internal/sim/engines"
	"pitot/internal/workload"
)

// Probing happens before the load: the server is asked which models it has, how many
// tokens it counts for a prompt's words, and how long one answer takes alone.

// fetchTimeout bounds one request of the probing that generates nothing.
const fetchTimeout = 30 * time.Second

// minTimeout gives the lesser of a limit of our own and the user's; 0 is no limit.
func minTimeout(own, allowed time.Duration) time.Duration {
	if allowed > 0 {
		return min(own, allowed)
	}
	return own
}

// modelsPath is the path of the server's list of models, "" if its API has none.
func (t *Target) modelsPath() string {
	switch listPath, ok := api.ModelsPath(t.API, t.Route); {
	case t.API.Models() == "":
		return ""
	case ok && t.fullRoute:
		return listPath
	}
	return api.RouteBelow(t.Dialer.Endpoint.Base, t.API.Models())
}

// greetingPath is a path that any server answers, with whatever status.
func (t *Target) greetingPath() string { return cmp.Or(t.modelsPath(), t.Dialer.Endpoint.Base+"/") }

// waitReady waits until the target answers at all.
func (t *Target) waitReady(ctx context.Context, wait time.Duration, notef func(string)) error {
	if wait == 0 {
		return nil
	}
	limit, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	announced, tried, why := false, false, ""
	for {
		a, err := t.fetch(limit, "GET", t.greetingPath(), nil)
		if err == nil && a.Status < 500 {
			return nil
		}
		class, detail := record.ServerError(a.Status), a.ErrorText()
		if err != nil {
			class, detail = client.Classify(err)
		}
		if err != nil && !tried && class != record.ErrConnect && limit.Err() == nil {
			tried = true
			if other := t.otherScheme(limit, class, detail); other != nil {
				return other
			}
		}
		if (class == record.ErrTLS || class == record.ErrHTTP2) && ctx.Err() == nil {
			return t.ExplainFailure(class, 0, detail) // waiting does not help
		}
		if limit.Err() == nil { // otherwise it only says that the time was over
			why = detail
		}
		if !announced {
			announced = true
			notef("waiting for " + t.addressWithoutPath())
		}
		select {
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			msg := fmt.Sprintf("%s did not answer within %s", t.addressWithoutPath(), say.Duration(wait))
			if why != "" {
				msg += ": " + client.Redact(why, t.Secret)
			}
			return &Error{Msg: msg, Hint: "look at the server's log, or try " + t.curlCommand()}
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (t *Target) fetch(ctx context.Context, method, path string, body []byte) (client.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, minTimeout(fetchTimeout, t.Timeout))
	defer cancel()
	return t.Dialer.Fetch(ctx, method, path, t.Headers, body, t.Secret)
}

// probe asks the server what the plan left open.
func (t *Target) probe(ctx context.Context, p Wanted) error {
	if err := t.readModels(ctx); err != nil {
		return err
	}
	if !t.hasModelList {
		changed, err := t.changeAPI(ctx)
		if err == nil && changed {
			err = t.readModels(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := t.needsModel(); err != nil {
		if f, ok := t.detectAPI(ctx); ok && f.api != t.API {
			err = say.Errorf("%v", err).WithHint(fmt.Sprintf("%s, or take the API that the server has: %s, so that is --api %s", say.HintOf(err), f.describeEvidence(), f.api.Name()))
		}
		return err
	}
	if t.Options.Model == "" && t.modelsPath() != "" {
		if err := t.wrongAPI(ctx, record.ErrNotFound); err != nil {
			return err
		}
		return &Error{Msg: "the server does not list its models at " + t.Dialer.Endpoint.URL(t.modelsPath()) + t.modelsAnswer, Hint: t.noListHint()}
	}
	t.findMetrics(ctx, p.Target)
	if err := t.adaptRequests(ctx); err != nil {
		return err
	}
	if err := t.checkContextLength(p.Ask); err != nil {
		return err
	}
	if p.GeneratedWords() {
		if err := t.calibrate(ctx); err != nil {
			return err
		}
		if p.GeneratedTurns() {
			if err := t.calibrateTurns(ctx); err != nil {
				return err
			}
		}
	}
	if t.Tokenizer != nil {
		return t.holdTokenizer(ctx)
	}
	return nil
}

// calibrateTurns finds out what the chat template adds to a conversation for each further
// turn, and for a system prompt: nothing where the server does not tell.
func (t *Target) calibrateTurns(ctx context.Context) error {
	c := &t.Calibration
	if c.PerWord == 0 || !t.API.Messages(t.Options) {
		return nil
	}
	seed := uint64(time.Now().UnixNano())
	besides := func(roles ...string) float64 { // the request of one message, tokens
		r := requestOfWords(greetingWords, seed)
		one := r.Messages[0].Segments
		r.Messages = nil
		for i, role := range roles {
			segments := slices.Clone(one)
			segments[0].Seed += uint64(i)
			r.Messages = append(r.Messages, workload.Message{Role: role, Segments: segments})
		}
		row := t.askWithRetries(ctx, r, 1)
		if row.PromptTokens < 0 {
			return 0
		}
		words := float64(greetingWords * len(roles))
		return float64(row.PromptTokens) - c.Overhead - float64(c.PerWord*words)
	}
	c.Turn = besides("user", "assistant", "user")
	c.System = besides("system", "user")
	return ctx.Err()
}

// checkContextLength refuses lengths that exceed the context the server reports.
func (t *Target) checkContextLength(p *config.Ask) error {
	limit, err := strconv.Atoi(t.Server["max_model_len"])
	if err != nil || !p.IsGenerated() {
		return nil
	}
	in, out := int(p.Input.Mean()+p.PrefixMean()), int(p.Output.Mean())
	if !api.GeneratesTokens(t.API) { // each text stands alone, and nothing comes behind it
		out = 0
	}
	if in+out <= limit {
		return nil
	}
	return &Error{fmt.Sprintf("%s tokens in and %s out do not fit the model's context of %s", say.Count(in), say.Count(out), say.Count(limit)), t.errorHint(record.ErrContextLength), record.ErrContextLength}
}

// noListHint says what to do about a server that lists no models: what answers with a web page
// is rarely an LLM server, whatever model is named.
func (t *Target) noListHint() string {
	if t.modelsRedirect != "" {
		return redirectHint(t.modelsRedirect)
	}
	url := "check the URL: http://host:port, …/v1, or …" + strings.Join(api.RouteEnds(), ", …")
	switch t.modelsPage {
	case 0:
		return "name a model: --model NAME, or another API: --api NAME; or " + url
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return "a proxy answers, and its server does not: see that it runs, and wait for it with --wait-ready 10m"
	}
	return url + "; where it is right, name a model: --model NAME, or another API: --api NAME"
}

// readModels reads the list of models; many servers name their engine there.
func (t *Target) readModels(ctx context.Context) error {
	if t.modelsPath() == "" {
		return nil
	}
	a, err := t.fetch(ctx, "GET", t.modelsPath(), nil)
	if err != nil {
		class, detail := client.Classify(err)
		return cmp.Or(t.otherScheme(ctx, class, detail), t.ExplainFailure(class, 0, detail))
	}
	switch {
	case a.WantsTLS():
		return t.ExplainFailure(record.ErrTLS, int32(a.Status), a.ErrorText())
	case (a.Status == 401 || a.Status == 403) && t.keyAsBearer():
		return t.readModels(ctx)
	case a.Status == 401 || a.Status == 403:
		return t.ExplainFailure(record.ErrAuth, int32(a.Status), a.ErrorText())
	case a.Status == http.StatusTooManyRequests && t.Options.Model == "":
		return t.rateLimited(a.ErrorText(), a.RetryAfter)
	case a.Status == 503 && t.Options.Model == "":
		return &Error{Msg: "the server is not ready: it answers 503 at " + t.Dialer.Endpoint.URL(t.modelsPath()), Hint: "wait for it with --wait-ready 10m"}
	case a.Status != 200: // no such route, perhaps: the first request will tell whether all is well
		t.modelsAnswer = fmt.Sprintf(": it answers %d", a.Status)
		if t.modelsRedirect = a.Redirect; a.Redirect != "" {
			t.modelsAnswer = ": " + a.Redirect
		} else if isPage(string(a.Body[:min(len(a.Body), 200)])) {
			t.modelsPage = a.Status
			t.modelsAnswer += " with a web page"
		} else if text := a.ErrorText(); text != "" {
			t.modelsAnswer += ", " + text
		}
		return nil
	}
	list := t.API.List(a.Body)
	if len(list) == 0 {
		t.modelsAnswer = ": its answer, with status 200, names none"
		if isPage(string(a.Body[:min(len(a.Body), 200)])) {
			t.modelsAnswer, t.modelsPage = ": its answer is a web page", a.Status
		}
		return nil
	}
	t.hasModelList = true
	known := make([]string, len(list))
	for i, m := range list {
		known[i] = m.Name
		if t.Options.Model == "" || t.Options.Model == m.Name {
			if t.Options.Model == "" && len(list) > 1 {
				t.choseModel(list)
			}
			t.askFor(m.Name)
			if m.Context > 0 {
				t.Server["max_model_len"] = strconv.Itoa(m.Context)
			}
			return t.noteEngine(ctx, m.Engine)
		}
	}
	h := "it lists " + say.QuotedNames(known[:min(len(known), 8)])
	if n := say.NearestName(t.Options.Model, known); n != "" {
		h = "did you mean --model " + n + "?"
	}
	if len(known) <= 64 { // a gateway may serve more than it lists
		return &Error{Msg: fmt.Sprintf("the server has no model %q", t.Options.Model), Hint: h}
	}
	return nil
}

// choseModel notes that the first of the models that the server lists is measured.
func (t *Target) choseModel(list []api.Model) {
	const shown = 10
	a := result.Adaptation{Kind: result.ModelChosen, Value: list[0].Name}
	for i, m := range list {
		if i == shown {
			a.Of = append(a.Of, fmt.Sprintf("%d more", len(list)-shown))
			break
		}
		a.Of = append(a.Of, client.Redact(m.Name, t.Secret))
	}
	t.noteAdaptation(a)
}

// noteEngine records which engine the server is, and sets the options that it takes.
func (t *Target) noteEngine(ctx context.Context, name string) error {
	if t.Server["engine"] == "" {
		t.Server["engine"] = name
	}
	if name == "" {
		return nil
	}
	if k, ok := engines.ByName(name); ok && k.VersionPath != "" {
		if a, err := t.fetch(ctx, "GET", t.Dialer.Endpoint.Base+k.VersionPath, nil); err == nil && a.Status == 200 {
			var v struct {
				Version string `json:"version"`
			}
			if json.Unmarshal(a.Body, &v) == nil && v.Version != "" {
				t.Server["version"] = v.Version
			}
		}
	}
	return t.prepareOptions(name)
}

// adaptRequests sends one small request and leaves out or renames what the server refuses: an
// output limit under another name, no stream_options, no temperature, completions
// where there is no chat and the API was not chosen by the user.
func (t *Target) adaptRequests(ctx context.Context) error {
	var chat *record.Row // its refusal, where completions were tried after it
	for range 8 {
		row := t.askWithRetries(ctx, requestOfWords(greetingWords, 0), 1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		low := strings.ToLower(row.Detail)
		switch {
		case row.Outcome == record.OK:
			t.noteResponse(&row)
			return nil
		case t.apiGuessed && t.API == api.Default() &&
			(row.Error == record.ErrNotFound && !strings.Contains(low, "model") || strings.Contains(low, "chat template") || strings.Contains(low, "chat_template")):
			chat = &row
			if err := t.useAPI(api.Completions, ""); err != nil {
				return err
			}
			t.noteAdaptation(result.Adaptation{Kind: result.CompletionsOnly})
		case t.apiGuessed && row.Error == record.ErrNotFound && t.isEmbeddingServer(ctx):
			return nil
		case t.applyConcession(row.Detail):
		case row.Error == record.ErrAuth && t.keyAsBearer():
		case row.Error == record.ErrEmpty || row.Error == record.ErrUnfinished:
			return nil // odd for one token, but it answers
		default:
			if !strings.Contains(low, "model") { // one that is not there
				if err := t.wrongAPI(ctx, row.Error); err != nil {
					return err
				}
			}
			if chat != nil && row.Error == record.ErrNotFound { // nobody named completions
				row = *chat
				if err := t.useAPI(api.Default(), ""); err != nil {
					return err
				}
			}
			if row.Error == record.ErrRateLimited {
				return t.rateLimited(row.Detail, row.RetryAfter)
			}
			return cmp.Or(t.otherScheme(ctx, row.Error, row.Detail), t.rowFailure(&row))
		}
	}
	return &Error{Msg: "the server refuses every form of the request", Hint: "find a body that it accepts with curl, and give what differs with --body"}
}

// isEmbeddingServer says whether a server that has neither chat nor completions has embeddings,
// which are measured then.
func (t *Target) isEmbeddingServer(ctx context.Context) bool {
	before, stream := t.API, t.Options.Stream
	if t.useAPI(api.Embeddings, "") == nil && t.askOnce(ctx, requestOfWords(greetingWords, 0), 1).Outcome == record.OK {
		t.apiGuessed = false
		t.Adaptations = slices.DeleteFunc(t.Adaptations, func(a result.Adaptation) bool { return a.Kind == result.CompletionsOnly })
		t.noteAdaptation(result.Adaptation{Kind: result.EmbeddingsOnly})
		return true
	}
	t.Options.Stream, t.Options.NoTemperature = stream, false
	_ = t.useAPI(before, "") // it was used before
	return false
}

// applyConcession changes the options as a refusal asks for, where the API knows how.
func (t *Target) applyConcession(refusal string) bool {
	a := t.API.Concede(refusal, &t.Options)
	t.setRoute()
	if a.Kind != "" {
		t.noteAdaptation(a)
	}
	return a.Kind != ""
}

// requestOfWords is a request of n generated words.
func requestOfWords(n int, seed uint64) workload.Request {
	return workload.Request{
		Messages: []workload.Message{{Role: "user", Segments: []workload.Segment{{Seed: seed, Words: n}}}},
		Input:    workload.Unknown, Session: workload.Unknown, Exact: true,
	}
}

// calibrate finds out how many tokens the server counts for n generated words: the
// overhead of the chat template, and tokens per word, which is 1 for every vocabulary
// that the words were chosen for.
func (t *Target) calibrate(ctx context.Context) error {
	if t.Options.IDs && t.Options.Encode == nil {
		return t.checkIDs(ctx)
	}
	if t.Tokenizer != nil {
		if done, err := t.calibrateByTokenizer(ctx); done || err != nil {
			return err
		}
	}
	c, err := t.fitCalibration(ctx)
	if err == nil && c.PerWord != 0 && !isExact(c) && t.restrictVocabulary(ctx) {
		t.noteAdaptation(result.Adaptation{Kind: result.RestrictedWords, Value: say.Count(t.Options.Vocab.Size())})
		c, err = t.fitCalibration(ctx)
	}
	if err != nil || c.PerWord == 0 {
		return err
	}
	t.Calibration = c
	t.Server["prompt_tokens"] = fmt.Sprintf("%s + %s per word", say.Exact(c.Overhead), say.Exact(c.PerWord))
	return nil
}

// checkIDs holds what the server counts for prompts of token ids against their number.
func (t *Target) checkIDs(ctx context.Context) error {
	had := len(t.Adaptations)
	c, err := t.fitCalibration(ctx)
	if err != nil {
		return err
	}
	switch {
	case isExact(c):
		t.Calibration = c
		t.Server["prompt_tokens"] = say.Exact(c.Overhead) + " + 1 per token id"
	case c.PerWord != 0:
		t.noteAdaptation(result.Adaptation{Kind: result.LengthsInIDs, Why: result.Reason{Code: result.IDsCountDifferent, N: c.PerWord, Of: c.Overhead}})
	default: // what is said of words is not so of ids
		t.Adaptations = t.Adaptations[:had]
		t.noteAdaptation(result.Adaptation{Kind: result.LengthsInIDs, Why: result.Reason{Code: result.IDsNotCounted}})
	}
	return nil
}

// lengthsInWords notes that the lengths of generated prompts are words, and why.
func (t *Target) lengthsInWords(why result.Reason) {
	t.noteAdaptation(result.Adaptation{Kind: result.LengthsInWords, Why: why})
}

// noteAdaptation notes what was changed or chosen: it is shown before the load and stored with the
// result.
func (t *Target) noteAdaptation(a result.Adaptation) {
	a.Value, a.Why.Quote = client.Redact(a.Value, t.Secret), client.Redact(a.Why.Quote, t.Secret)
	t.Adaptations = append(t.Adaptations, a)
}

// isExact says whether each word is exactly one token.
func isExact(c workload.Calibration) bool {
	return c.PerWord == 1 && c.Overhead == math.Trunc(c.Overhead)
}

// fitCalibration asks for one token after prompts of two lengths, two of each, and fits
// a line. The zero value means that the server does not report prompt tokens.
func (t *Target) fitCalibration(ctx context.Context) (workload.Calibration, error) {
	const short, long = shortWords, longWords
	var sum [2]float64
	seed := uint64(time.Now().UnixNano())
	for i, n := range []int{short, long} {
		for range calibrations {
			row := t.askWithRetries(ctx, requestOfWords(n, seed), 1)
			seed++
			if ctx.Err() != nil {
				return workload.Calibration{}, ctx.Err()
			}
			if row.Outcome != record.OK && row.PromptTokens < 0 {
				t.lengthsInWords(result.Reason{Code: result.PromptFailed, N: float64(n), Quote: row.Error + ": " + row.Detail})
				return workload.Calibration{}, nil
			}
			if row.PromptTokens < 0 {
				t.lengthsInWords(result.Reason{Code: result.PromptsNotCounted})
				return workload.Calibration{}, nil
			}
			sum[i] += float64(row.PromptTokens)
		}
	}
	slope := (sum[1] - sum[0]) / 2 / (long - short)
	if slope < 0.1 || slope > 100 {
		t.lengthsInWords(result.Reason{Code: result.CountNotByPrompt, N: short, Of: long, Low: sum[0] / 2, High: sum[1] / 2})
		return workload.Calibration{}, nil
	}
	return workload.Calibration{PerWord: slope, Overhead: sum[0]/2 - slope*short}, nil
}

// SendWarmup sends n requests of the workload one after the other: they warm caches and
// compiled kernels, and their time is the residence time of a request alone. It gives those
// that were answered.
func (t *Target) SendWarmup(ctx context.Context, src workload.Source, n int) (answered []workload.Request) {
	for i := range n {
		// Indices from the far end, which the load never reaches.
		req, err := src.At(math.MaxInt32 - int64(i))
		if err != nil {
			return answered
		}
		begin := time.Now()
		row := t.askOnce(ctx, req, req.Output)
		if row.Outcome != record.OK || ctx.Err() != nil {
			return answered
		}
		t.Residence = time.Since(begin)
		answered = append(answered, req)
	}
	return answered
}

// Warm asks for what requests share, one after the other, before the load. It gives those
// that were answered.
func (t *Target) Warm(ctx context.Context, shared []workload.Request) (answered []workload.Request) {
	for _, req := range shared {
		if row := t.askWithRetries(ctx, req, req.Output); row.Outcome == record.OK {
			answered = append(answered, req)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return answered
}

// askWithRetries asks up to three times where the error may be temporary (rate limit,
// reset, 5xx), so that a busy server does not end the run before its load.
func (t *Target) askWithRetries(ctx context.Context, req workload.Request, output int) record.Row {
	for again := 2; ; again-- {
		row := t.askOnce(ctx, req, output)
		switch row.Error {
		case record.ErrRateLimited, record.ErrReset, record.ErrClosed, record.ErrStream:
		default:
			if !record.IsServerError(row.Error) {
				return row
			}
		}
		if again == 0 {
			return row
		}
		pause := time.Duration(min(max(row.RetryAfter, 1), 10)) * time.Second
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return row
		}
	}
}

// askOnce sends one request on a connection of its own and waits for its end.
func (t *Target) askOnce(ctx context.Context, req workload.Request, output int) record.Row {
	req.Output = output
	x := client.NewExchange(t.API)
	x.Named = true
	row := t.sendRequest(ctx, x, req)
	if row.Outcome == record.OK {
		t.answeredBy = x.NamedModel()
	}
	return row
}

// noteResponse notes what the response to the first request that was answered shows: that it
// was not streamed, and that another model names itself.
func (t *Target) noteResponse(row *record.Row) {
	if t.Options.Stream && !row.Stream && api.GeneratesTokens(t.API) {
		t.noteAdaptation(result.Adaptation{Kind: result.StreamIgnored})
	}
	if t.answeredBy != "" && !sameModel(t.Options.Model, t.answeredBy) {
		t.noteAdaptation(result.Adaptation{Kind: result.OtherModel, Value: t.answeredBy, Of: []string{client.Redact(t.Options.Model, t.Secret)}})
	}
}

// sameModel reports whether two names are one but for case, the path or owner before, and a
// tag of Ollama's. A dated version is named apart: which it is may matter.
func sameModel(requested, named string) bool {
	last := func(s string) string {
		s = strings.ToLower(strings.TrimRight(s, "/"))
		return strings.TrimSuffix(s[strings.LastIndexAny(s, "/\\")+1:], ":latest")
	}
	return last(requested) == last(named)
}

// Answer sends one request on a connection of its own, and gives what came of it: its row,
// with the chunks of the answer, the text of its first choice and that of all chunks in turn.
func (t *Target) Answer(ctx context.Context, req workload.Request) (row record.Row, chunks []record.Chunk, text, spelt []byte) {
	x := client.NewExchange(t.API)
	x.Keep, x.Spell = true, true
	row = t.sendRequest(ctx, x, req)
	chunks, spelt = x.TakeSpelt()
	return row, chunks, x.Text(), spelt
}

// showWait is after how long the user is told that a response is waited for.
var showWait = 5 * time.Second

// noteWait tells the user that a response before the load is waited for, once.
func (t *Target) noteWait() {
	t.waiting.Do(func() {
		if t.notef != nil {
			t.notef("waiting for a response of " + t.addressWithoutPath() + ", for at most " + say.Duration(t.Timeout) + " (--timeout)")
		}
	})
}

// sendRequest sends a request and waits for the end of its answer. It is kept for
// [Target.DrainProbes].
func (t *Target) sendRequest(ctx context.Context, x *client.Exchange, req workload.Request) record.Row {
	x.Sink, x.Secret, x.Origin = discard{}, t.Secret, t.probes.start()
	x.Asked, x.Memory = t.API.Asked(&req, t.Options), t.Memory
	row := record.BlankRow()
	row.ID, row.Class, row.Stream = t.probes.nextID(), record.ProbeClass, t.Options.Stream
	row.InputPlanned, row.OutputPlanned = int32(req.Input), int32(req.Output)
	x.Begin(row)
	defer func() { t.probes.record(x.Row) }()
	body, err := t.API.Body(nil, &req, t.Options)
	if err == nil {
		x.Request = append(client.AppendHead(nil, "POST", t.Dialer.Endpoint.Host, t.Route, t.Headers, len(body)), body...)
		var c *client.Conn
		if c, err = t.Dialer.Connect(ctx); err == nil {
			x.Row.Ready = clock.Now() - x.Origin
			ended := make(chan struct{})
			c.StartReading(func(*client.Conn, *client.Exchange, bool) { close(ended) })
			ctx, cancel := context.WithTimeout(ctx, t.Timeout)
			defer cancel()
			stop := context.AfterFunc(ctx, func() {
				x.RequestAbandon(record.ErrTimeout)
				c.Abort()
			})
			c.Send(x)
			select {
			case <-ended:
			case <-time.After(showWait):
				t.noteWait()
				<-ended
			}
			stop()
			c.Abort()
			return x.Row
		}
	}
	x.Refuse(clock.Now(), err)
	return x.Row
}
