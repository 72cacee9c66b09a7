package main

import "testing"

// TestVersionAt verifies that a build without a tag says which version its sources become, and their commit.
func TestVersionAt(t *testing.T) {
	t.Parallel()
	for commit, want := range map[string]string{
		"": next + "-dev",
		"0123456789abcdef0123456789abcdef01234567":               next + "-dev+0123456789ab",
		"0123456789abcdef0123456789abcdef01234567, with changes": next + "-dev+0123456789ab.changed",
		"0123": next + "-dev+0123",
	} {
		if got := versionAt(commit); got != want {
			t.Errorf("%q: got %s, want %s", commit, got, want)
		}
	}
}
