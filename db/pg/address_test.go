package pg_test

import (
	"strings"
	"testing"

	"partnerapi/db/pg"
)

// TestAddressIsNotShown: an address that cannot be read, in whichever form, is an error that
// shows nothing of its password.
func TestAddressIsNotShown(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://someone:sesame@127.0.0.1:port/x",
		"postgres://someone:ses/sesame@127.0.0.1/x",
		"postgres://someone:12/sesame:5@127.0.0.1:x/x",
		"postgres://someone:open@sesame@127.0.0.1/x",
		"postgresq://someone:sesame@127.0.0.1/x",
		"postgresq://someone:sesame@127.0.0.1/x?sslmode=disable",
		"host=127.0.0.1 port=one user=someone password=sesame",
		"host=127.0.0.1 port=one user=someone password = sesame",
		"host=127.0.0.1 port=one password = 'two sesame words'",
		`host=127.0.0.1 port=one password='quo\'te sesame'`,
		`host=127.0.0.1 password='no end \'sesame`,
		"host=127.0.0.1 password=two sesame words dbname=x",
		"host=127.0.0.1 sslmode=maybe sslpassword=sesame",
		"host=127.0.0.1 pool_max_conns=sesame",
	} {
		_, opened := pg.Open(address)
		_, found := pg.FindPooler(t.Context(), address)
		for _, err := range []error{opened, found} {
			if err == nil || strings.Contains(err.Error(), "sesame") || !strings.Contains(err.Error(), "read the database URL: write it as") {
				t.Errorf("%s: %v", address, err)
			}
		}
	}

	_, err := pg.Open("host=127.0.0.1 password=sesame sslmode=verify-full sslrootcert=/nowhere/ca.pem")
	if err == nil || !strings.Contains(err.Error(), "/nowhere/ca.pem") {
		t.Errorf("a certificate that is missing: %v", err)
	}
}
