package record

import "slices"

// A field describes one value of a record: its column name and where it
// lives. One list per record serves the journal and Parquet, so that a field
// is added in one place.
type field[T any] struct {
	name  string
	at    func(*T) any // *int64, *int32, *float64, *bool, *string, or *uint8 for a word
	null  null
	words [][]byte // what the values of a *uint8 are called
}

// null says which value of a number is stored as null in Parquet.
type null uint8

const (
	never   null = iota
	ifUnset      // -1
	ifZero
)

var (
	outcomeWords = wordsOf(OK, Failed, Cut, Unsent)
	kindWords    = wordsOf(Answer, Reasoning, ToolCall, Refusal)
)

func wordsOf[T interface{ String() string }](values ...T) [][]byte {
	var words [][]byte
	for _, v := range values {
		words = append(words, []byte(v.String()))
	}
	return words
}

// rowFields fixes the order of a row in the journal too. A journal says how many fields its
// rows have, and one of another number is not read.
var rowFields = []field[Row]{
	{name: "point", at: func(r *Row) any { return &r.Point }},
	{name: "id", at: func(r *Row) any { return &r.ID }},
	{name: "session", at: func(r *Row) any { return &r.Session }, null: ifUnset},
	{name: "turn", at: func(r *Row) any { return &r.Turn }},
	{name: "class", at: func(r *Row) any { return &r.Class }},
	{name: "due_ns", at: func(r *Row) any { return &r.Due }, null: ifUnset},
	{name: "eligible_ns", at: func(r *Row) any { return &r.Eligible }, null: ifUnset},
	{name: "ready_ns", at: func(r *Row) any { return &r.Ready }, null: ifUnset},
	{name: "sent_ns", at: func(r *Row) any { return &r.Sent }, null: ifUnset},
	{name: "headers_ns", at: func(r *Row) any { return &r.Headers }, null: ifUnset},
	{name: "first_event_ns", at: func(r *Row) any { return &r.FirstEvent }, null: ifUnset},
	{name: "first_token_ns", at: func(r *Row) any { return &r.FirstToken }, null: ifUnset},
	{name: "first_answer_ns", at: func(r *Row) any { return &r.FirstAnswer }, null: ifUnset},
	{name: "last_token_ns", at: func(r *Row) any { return &r.LastToken }, null: ifUnset},
	{name: "done_ns", at: func(r *Row) any { return &r.Done }, null: ifUnset},
	{name: "dns_ns", at: func(r *Row) any { return &r.DNS }, null: ifUnset},
	{name: "connect_ns", at: func(r *Row) any { return &r.Connect }, null: ifUnset},
	{name: "tls_ns", at: func(r *Row) any { return &r.TLS }, null: ifUnset},
	{name: "reused", at: func(r *Row) any { return &r.Reused }},
	{name: "retried", at: func(r *Row) any { return &r.Retried }},
	{name: "input_planned", at: func(r *Row) any { return &r.InputPlanned }, null: ifUnset},
	{name: "output_planned", at: func(r *Row) any { return &r.OutputPlanned }, null: ifUnset},
	{name: "prompt_tokens", at: func(r *Row) any { return &r.PromptTokens }, null: ifUnset},
	{name: "cached_tokens", at: func(r *Row) any { return &r.CachedTokens }, null: ifUnset},
	{name: "completion_tokens", at: func(r *Row) any { return &r.CompletionTokens }, null: ifUnset},
	{name: "reasoning_tokens", at: func(r *Row) any { return &r.ReasoningTokens }, null: ifUnset},
	{name: "hidden_tokens", at: func(r *Row) any { return &r.HiddenTokens }, null: ifUnset},
	{name: "first_tokens", at: func(r *Row) any { return &r.FirstTokens }, null: ifUnset},
	{name: "stream", at: func(r *Row) any { return &r.Stream }},
	{name: "chunks", at: func(r *Row) any { return &r.Chunks }},
	{name: "arrivals", at: func(r *Row) any { return &r.Arrivals }},
	{name: "merged", at: func(r *Row) any { return &r.Merged }},
	{name: "user_stamps", at: func(r *Row) any { return &r.UserStamps }},
	{name: "choices", at: func(r *Row) any { return &r.Choices }},
	{name: "bytes_out", at: func(r *Row) any { return &r.BytesOut }},
	{name: "bytes_in", at: func(r *Row) any { return &r.BytesIn }},
	{name: "text_bytes", at: func(r *Row) any { return &r.TextBytes }},
	{name: "retransmits", at: func(r *Row) any { return &r.Retransmits }},
	{name: "finish", at: func(r *Row) any { return &r.Finish }},
	{name: "status", at: func(r *Row) any { return &r.Status }, null: ifUnset},
	{name: "retry_after", at: func(r *Row) any { return &r.RetryAfter }, null: ifUnset},
	{name: "outcome", at: func(r *Row) any { return (*uint8)(&r.Outcome) }, words: outcomeWords},
	{name: "error", at: func(r *Row) any { return &r.Error }},
	{name: "detail", at: func(r *Row) any { return &r.Detail }},
	{name: "after", at: func(r *Row) any { return &r.After }, null: ifUnset},
	{name: "turns", at: func(r *Row) any { return &r.Turns }, null: ifUnset},
	{name: "history", at: func(r *Row) any { return &r.History }, null: ifUnset},
	{name: "earlier_attempts", at: func(r *Row) any { return &r.Earlier }},
	{name: "earlier_errors", at: func(r *Row) any { return &r.EarlierErrors }},
	{name: "first_sent_ns", at: func(r *Row) any { return &r.FirstSent }, null: ifUnset},
	{name: "backoff_ns", at: func(r *Row) any { return &r.Backoff }},
	{name: "counted_tokens", at: func(r *Row) any { return &r.Counted }, null: ifUnset},
	{name: "no_usage", at: func(r *Row) any { return &r.NoUsage }},
	{name: "question", at: func(r *Row) any { return &r.Question }},
	{name: "wrong", at: func(r *Row) any { return &r.Wrong }},
	{name: "differs_at", at: func(r *Row) any { return &r.DiffersAt }, null: ifUnset},
	{name: "limit_requests", at: func(r *Row) any { return &r.LimitRequests }, null: ifUnset},
	{name: "remaining_requests", at: func(r *Row) any { return &r.LeftRequests }, null: ifUnset},
	{name: "limit_tokens", at: func(r *Row) any { return &r.LimitTokens }, null: ifUnset},
	{name: "remaining_tokens", at: func(r *Row) any { return &r.LeftTokens }, null: ifUnset},
	{name: "reset_requests_ns", at: func(r *Row) any { return &r.ResetRequests }, null: ifUnset},
	{name: "reset_tokens_ns", at: func(r *Row) any { return &r.ResetTokens }, null: ifUnset},
	{name: "skipped_events", at: func(r *Row) any { return &r.Skipped }},
}

// requestRow is a line of requests.parquet.
type requestRow struct {
	Row
	// chunkEnd is the number of lines of chunks.parquet up to and including
	// the request's last, 0 if it has none. It lets a reader join the two
	// files in one pass over both.
	chunkEnd int64
}

func (r *requestRow) partKey() part {
	worker, _ := splitID(r.ID)
	return part{r.Point, worker}
}

// toRow is the row as its worker gave it.
func (r *requestRow) toRow() Row {
	row := r.Row
	_, row.ID = splitID(r.ID)
	_, row.After = splitID(r.After)
	return row
}

var requestFields = append(requestOf(rowFields),
	field[requestRow]{name: "chunk_end", at: func(r *requestRow) any { return &r.chunkEnd }, null: ifZero})

func requestOf(rows []field[Row]) []field[requestRow] {
	var out []field[requestRow]
	for _, f := range rows {
		pointer := func(r *requestRow) any { return f.at(&r.Row) }
		out = append(out, field[requestRow]{name: f.name, at: pointer, null: f.null, words: f.words})
	}
	return out
}

// chunkRow is a line of chunks.parquet.
type chunkRow struct {
	point int32
	Chunk
}

func (c *chunkRow) partKey() part {
	worker, _ := splitID(c.Request)
	return part{c.point, worker}
}

// toChunk is the chunk as its worker gave it.
func (c *chunkRow) toChunk() Chunk {
	chunk := c.Chunk
	_, chunk.Request = splitID(c.Request)
	return chunk
}

var chunkFields = []field[chunkRow]{
	{name: "point", at: func(c *chunkRow) any { return &c.point }},
	{name: "request", at: func(c *chunkRow) any { return &c.Request }},
	{name: "t_ns", at: func(c *chunkRow) any { return &c.T }},
	{name: "earliest_ns", at: func(c *chunkRow) any { return &c.Earliest }},
	{name: "tokens", at: func(c *chunkRow) any { return &c.Tokens }, null: ifZero},
	{name: "bytes", at: func(c *chunkRow) any { return &c.Bytes }},
	{name: "choice", at: func(c *chunkRow) any { return &c.Choice }},
	{name: "kind", at: func(c *chunkRow) any { return (*uint8)(&c.Kind) }, words: kindWords},
}

// timeFields are those of a chunk that tell whose it is, when it came and how
// many tokens it had.
func timeFields() []field[chunkRow] {
	return slices.DeleteFunc(slices.Clone(chunkFields), func(f field[chunkRow]) bool {
		return !slices.Contains([]string{"point", "request", "t_ns", "tokens", "choice"}, f.name)
	})
}

// sampleRow is a line of telemetry.parquet.
type sampleRow struct {
	Sample
	worker int32
}

func (s *sampleRow) partKey() part { return part{s.Point, s.worker} }

var sampleFields = []field[sampleRow]{
	{name: "point", at: func(s *sampleRow) any { return &s.Point }},
	{name: "t_ns", at: func(s *sampleRow) any { return &s.T }},
	{name: "source", at: func(s *sampleRow) any { return &s.Source }},
	{name: "name", at: func(s *sampleRow) any { return &s.Name }},
	{name: "value", at: func(s *sampleRow) any { return &s.Value }},
	{name: "worker", at: func(s *sampleRow) any { return &s.worker }},
}
