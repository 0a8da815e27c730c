package parquet

import (
	"errors"

	"github.com/parquet-go/parquet-go/format"
)

// mostLevels bounds how deep columns may lie in each other.
const mostLevels = 100

// Node is a column of a schema, or a group of columns.
type Node struct {
	Name     string
	Children []*Node // of a group
	Optional bool
	Repeated bool

	element *format.SchemaElement
	leaves  [2]int // its columns with values: from, to
	def     uint8  // level at which it is defined
	rep     uint8  // at which it repeats
}

// Kind is the physical type of a column's values.
type Kind = format.Type

// Kinds that are written.
const (
	Bool   = format.Boolean
	Int    = format.Int32
	Long   = format.Int64
	Double = format.Double
	Text   = format.ByteArray
)

// IsLeaf says that it is a column with values.
func (n *Node) IsLeaf() bool { return n.element.Type.Valid }

// Kind is the physical type of a leaf's values.
func (n *Node) Kind() Kind { return n.element.Type.V }

// schemaOf reads the tree that a footer has flattened, and its leaves in order.
func schemaOf(list []format.SchemaElement) (root *Node, leaves []*Node, err error) {
	at := 0
	var next func(of *Node, depth int) (*Node, error)
	next = func(of *Node, depth int) (*Node, error) {
		if at == len(list) {
			return nil, errors.New("the schema ends early")
		}
		if depth > mostLevels {
			return nil, errors.New("the schema is too deep")
		}
		n := &Node{Name: list[at].Name, element: &list[at], leaves: [2]int{len(leaves), len(leaves)}}
		at++
		if of != nil {
			n.def, n.rep = of.def, of.rep
			switch n.element.RepetitionType.V {
			case format.Optional:
				n.Optional, n.def = true, n.def+1
			case format.Repeated:
				n.Repeated, n.def, n.rep = true, n.def+1, n.rep+1
			}
		}
		if n.IsLeaf() {
			if of == nil || n.element.NumChildren.V > 0 {
				return nil, errors.New("the schema has a column with columns")
			}
			if n.element.TypeLength.V < 0 {
				return nil, errors.New("the schema has values of a negative length")
			}
			leaves = append(leaves, n)
		} else {
			for range n.element.NumChildren.V {
				child, err := next(n, depth+1)
				if err != nil {
					return nil, err
				}
				n.Children = append(n.Children, child)
			}
		}
		n.leaves[1] = len(leaves)
		return n, nil
	}
	if root, err = next(nil, 0); err == nil && at != len(list) {
		err = errors.New("the schema has columns that are of no group")
	}
	return root, leaves, err
}
