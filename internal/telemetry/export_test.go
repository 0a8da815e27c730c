package telemetry

// What tests look at besides: they stand outside, since the engines' names do.

const Mebi = mebi

var (
	IsNumber     = isNumber
	Index        = index
	ProcessNames = process
)

func (t *Table) Sources() []Source { return t.sources }
