//go:build slow

package seed

import "testing"

// TestLargeBesideTheDemo: a large database can be added to the demonstration, which stays as it was.
func TestLargeBesideTheDemo(t *testing.T) {
	t.Parallel()
	d, keys := demo(t)
	if err := Large(t.Context(), d, Size{Clients: 3, Users: 10}, nil); err != nil {
		t.Fatal(err)
	}
	again, err := Demo(t.Context(), d)
	if err != nil || again != keys {
		t.Errorf("the demonstration afterwards: %v, %v", again, err)
	}
	if n := value[int](t, d, "SELECT count(*) FROM phishing_templates"); n != 48 {
		t.Errorf("%d templates", n)
	}
}
