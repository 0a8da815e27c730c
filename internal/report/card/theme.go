package card

// paint names a colour by its use.
type paint int

const (
	paper paint = iota
	ink
	soft // secondary text
	rule
	accent
	good
	warn
	bad
	band // an interval behind the curve
)

// paintName are the classes of the paints in an SVG.
var paintName = [...]string{"paper", "ink", "soft", "rule", "accent", "good", "warn", "bad", "band"}

// theme has the colours of the paints, 0xRRGGBB. They are those of the page.
type theme [len(paintName)]uint32

var (
	light = theme{
		0xffffff, 0x16191d, 0x545c66, 0xdfe3e8, 0x1558b0, 0x17693f, 0x7d4e00, 0xa3201b, 0xe3f3ea,
	}
	dark = theme{
		0x13161a, 0xe9ecef, 0xb1b9c3, 0x333a43, 0x7db4ff, 0x7fdca6, 0xf3c969, 0xff9d94, 0x17352a,
	}
)
