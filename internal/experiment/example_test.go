package experiment

import "testing"

// The plan of the nightly job in the documents is one.
func TestExamplePlan(t *testing.T) {
	if _, err := Read("../../docs/examples/nightly.yaml"); err != nil {
		t.Error(err)
	}
}
