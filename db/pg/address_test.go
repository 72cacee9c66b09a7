package pg_test

import (
	"strings"
	"testing"

	"partnerapi/db/pg"
)

// TestAddressIsNotShown verifies that an address that cannot be read, in whichever form, is an error that shows nothing
// of its password. Such an address never reaches a server.
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

		// Parts that are separated as in other programs.
		"host=127.0.0.1,password=sesame",
		"host=127.0.0.1, password=sesame",
		"host=127.0.0.1,port=1,user=x,password=sesame,dbname=y",
		"host=127.0.0.1 user=x,password=sesame",
		"host=127.0.0.1 dbname=y,password=sesame",
		"host=127.0.0.1 port=1,password=sesame",
		"host=127.0.0.1 port=1 sslmode=disable,password=sesame",
		"host=127.0.0.1 port=1 application_name=y,password=sesame",
		"host=127.0.0.1 port=1 target_session_attrs=any,password=sesame",
		"host=127.0.0.1 port=1 sslrootcert=/nowhere/ca.pem,password=sesame",
		"host=127.0.0.1 port=1 passfile=/nowhere/pgpass,password=sesame",
		"host=127.0.0.1 port=1 service=x,password=sesame",
		"host=127.0.0.1 port=1 connect_timeout=5,password=sesame",
		"host=127.0.0.1 port=1 options=-c,password=sesame",
		"host=127.0.0.1;password=sesame",
		"host=127.0.0.1 ; password = sesame",
		"host=127.0.0.1 port=1 user=x;password=sesame",
		"host=127.0.0.1 port=1 dbname=y;password=sesame",
		"host=127.0.0.1 port=1 user=x;PWD=sesame",
		"Host=127.0.0.1;Port=1;Username=x;Password=sesame;Database=y",
		"Server=127.0.0.1,1;User Id=x;Pwd=sesame;Database=y",
		"host=127.0.0.1|password=sesame",
		"host=127.0.0.1 port=1 dbname=y/password=sesame",
		"host=127.0.0.1 port=1 service=x|password=sesame",
		"host=127.0.0.1 port=1 user=x:sesame",
		"host=127.0.0.1 port=1 user=x,sesame",
		"host=127.0.0.1 port=1 dbname=y=sesame",
		"host=127.0.0.1&password=sesame",
		"jdbc:postgresql://127.0.0.1:1/y?user=x&password=sesame",
		"postgres://x@127.0.0.1,password=sesame/y",
		"postgres://x@127.0.0.1:1/y,password=sesame",
		"postgres://x@127.0.0.1:1/y;password=sesame",
		"postgres://x@127.0.0.1:1/y%2Cpassword%3Dsesame",
		"postgres://127.0.0.1:1/y?user=x,password=sesame",
		"postgres://127.0.0.1:1/y?user=x%3Bpassword%3Dsesame",
		"postgres://127.0.0.1:1/y?sslmode=disable;password=sesame",
		"postgres://x,password=sesame@127.0.0.1:1/y",
	} {
		_, opened := pg.Open(address)
		_, found := pg.HasPooler(t.Context(), address)
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

// TestAddressesOfOtherNames verifies that names and passwords with unusual characters are accepted where they are
// clear.
func TestAddressesOfOtherNames(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://someone:a%2Cpassword%3Db@127.0.0.1:1/x",
		"postgres://someone:endpoint=x;sesame,y@db1.example.com:5432,db2.example.com:5432/x?target_session_attrs=read-write",
		"postgres:///partnerapi?host=/var/run/postgresql&password=a%3Bb",
		"postgres://someone@[fe80::1%25eth0]:5432/x",
		"host='/tmp/a folder' user='A Group (staff)' dbname='Größe $1.2'",
		"host=127.0.0.1 user=someone@server password='a,b;c=d' sslpassword=x options='-c search_path=a,b -c my.password=x'",
		"host=db_1.example.com,db-2 port=5432,5433 user=project.someone#EXT# dbname=a/b",
		"host=@abstract user=x",
		"",
	} {
		d, err := pg.Open(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
