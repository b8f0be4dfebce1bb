package live

import "testing"

// Each platform says what its emulator does at each step, and how a message that was sent is read.
func TestEveryPlatformKnowsEachStep(t *testing.T) {
	for name, about := range platformSpecs() {
		if about.decodeSent == nil {
			t.Errorf("%s reads no message", name)
		}
		for _, step := range steps {
			if about.want[step.name] == "" {
				t.Errorf("%s does not say what its emulator does at %q", name, step.name)
			}
		}
	}
}
