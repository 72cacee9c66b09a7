package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// cellOf makes the database of a flag that of a cell of four, with a partner and a key.
func cellOf(t *testing.T, flag, cell string) (key string) {
	t.Helper()
	must(t, "migrate", flag, "--cell="+cell, "--cell-count=4")
	must(t, "partners", "create", flag, "Partner of "+cell)
	return newKey(t, flag, "--name=x", "--clients=all", "--scopes=read,write")
}

// TestCell: a cell makes keys of its own, refuses those of others on every surface with
// the code of theirs, and stays the cell that it is.
func TestCell(t *testing.T) {
	t.Parallel()
	flag, of := databaseFlag(t), []string{"--cell=01", "--cell-count=4"}
	key, other := cellOf(t, flag, "01"), cellOf(t, databaseFlag(t), "02")
	if !strings.HasPrefix(key, "papi_01") || !strings.HasPrefix(other, "papi_02") {
		t.Errorf("the keys are %s and %s", key, other)
	}
	r := serving(t, append(of, flag, "--release=latest")...)
	r.get("/v2/clients", key).want(http.StatusOK)
	paths := map[string]string{"/v2/clients": `{"error":{"code":"misdirected",`, "/mcp": `{"error":{"code":"misdirected",`}
	if older() {
		paths["/v1/clients"] = `{"status":421,"error":"misdirected",`
		r.get("/v1/clients", key).want(http.StatusOK)
	}
	for path, begins := range paths {
		for of, code := range map[string]string{other: "02", "pk_demo_all": "00"} {
			answer := plainCaller(t, r.address).do("POST", path, of, fields{"name": "x"}).want(http.StatusMisdirectedRequest)
			if answer.header.Get("X-Cell") != code || !strings.HasPrefix(string(answer.body), begins) {
				t.Errorf("%s answers %s of %s: %s", path, of, answer.header.Get("X-Cell"), answer.body)
			}
		}
	}
	says(t, string(r.get("/metrics", "").want(http.StatusOK).body),
		`partnerapi_build_info{cell="01",`, fmt.Sprintf("\npartnerapi_misdirected_total %d\n", 2*len(paths)))
	r.finish()

	for _, wrong := range [][]string{nil, {"--cell=02", "--cell-count=4"}, {"--cell=01", "--cell-count=8"}} {
		says := []string{"permanently cell 01 of 4", "--cell 01 --cell-count 4"}
		refused(t, 1, append([]string{"serve", "--listen=127.0.0.1:0", flag}, wrong...), says...)
		refused(t, 1, append([]string{"migrate", flag}, wrong...), says...)
	}
	if found := command(t, "doctor", flag); !strings.Contains(found.out, "fail  cell ") {
		t.Errorf("doctor says %s", found.out)
	}
	if found := command(t, append([]string{"doctor", flag}, of...)...); !strings.Contains(found.out, "ok    cell              01 of 4\n") {
		t.Errorf("doctor says %s", found.out)
	}
	refused(t, 2, []string{"serve", flag, "--cell=01"}, "--cell", "00 to 00")
	refused(t, 2, []string{"migrate", flag, "--cell=1", "--cell-count=4"}, "--cell", "two characters of")
}

// TestNoCell: without the flags nothing shows of cells, in the metrics either
// (TestMetricsListen). The installation can become the first of several, and no other.
func TestNoCell(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	if found := command(t, "doctor", flag); strings.Contains(found.out, "cell") {
		t.Errorf("doctor says %s", found.out)
	}
	refused(t, 1, []string{"serve", "--listen=127.0.0.1:0", flag, "--cell=01", "--cell-count=4"}, "has partners", "cell 01 of 4")
	serving(t, flag, "--demo", "--cell-count=4").get("/v2/clients", "pk_demo_all").want(http.StatusOK)
}

// freeAddress is one that nobody listens on. Where the system has it, it is of a host
// that no other test listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// routes are a table of a router, in its order: what a key or a path begins with, and the
// cell that it leads to.
type routes [][2]string

var (
	inNginx   = regexp.MustCompile(`(?m)^\s*~\^(papi_\w+|/c\w+/)\s+(cell_\d+);`)
	inHAProxy = regexp.MustCompile(`(?m)^\s*(?:use_backend|http-request set-var\(txn.cell\)) (?:str\()?(cell_\d+)\)? if \{ (?:var\(txn.key\) -m beg|path_beg) (\S+) \}`)
	inEnvoy   = regexp.MustCompile(`prefix: (?:/, headers: .*x-api-key, string_match: \{ prefix: )?(/\w+/|papi_\w+) .*cluster: (cell_\d+)`)
	inBearer  = regexp.MustCompile(`name: authorization, .*bearer\) \+(papi_\w+)\.\*.*cluster: (cell_\d+)`)
)

// TestRouters: the three configurations lead the same keys and links to the same cells.
func TestRouters(t *testing.T) {
	t.Parallel()
	want := routes{{"/c01/", "cell_1"}, {"/c02/", "cell_2"}, {"papi_01Zk4T8q", "cell_2"}, {"papi_01", "cell_1"}, {"papi_02", "cell_2"}}
	read := func(file string, route *regexp.Regexp) (table routes) {
		for _, m := range route.FindAllStringSubmatch(fileText(t, "deploy/cells/"+file), -1) {
			table = append(table, [2]string{m[1], m[2]})
		}
		return table
	}
	nginx := read("nginx.conf", inNginx)
	nginx = append(nginx[3:], nginx[:3]...) // links last
	haproxy, envoy, bearer := read("haproxy.cfg", inHAProxy), read("envoy.yaml", inEnvoy), read("envoy.yaml", inBearer)
	for i := range haproxy { // the cell comes first
		slices.Reverse(haproxy[i][:])
	}
	for name, table := range map[string]routes{"nginx": nginx, "HAProxy": haproxy, "Envoy": envoy, "Envoy, bearer": append(want[:2:2], bearer...)} {
		if !slices.Equal(table, want) {
			t.Errorf("%s has %v", name, table)
		}
	}
}

// behindNginx runs nginx with the configuration of deploy/cells, without TLS, and with some texts replaced, until the
// test ends. It returns the addresses that it leads to for two cells, and its own.
func behindNginx(t *testing.T, replaced map[string]string) (cells [2]string, router string) {
	t.Helper()
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not installed: its configuration is not tried")
	}
	listen := freeAddress(t)
	cells = [2]string{freeAddress(t), freeAddress(t)}
	replaced["10.0.0.10:8080"], replaced["10.0.1.10:8080"] = cells[0], cells[1]
	dir := t.TempDir()
	text := regexp.MustCompile(`(?m)^\s*(ssl_\w+ .*|listen \[::\].*)$`).ReplaceAllString(fileText(t, "deploy/cells/nginx.conf"), "")
	for old, now := range replaced {
		if !strings.Contains(text, old) {
			t.Fatalf("the configuration has no %s", old)
		}
		text = strings.ReplaceAll(text, old, now)
	}
	text = strings.ReplaceAll(text, "listen 443 ssl;", "listen "+listen+";")
	text = "daemon off; pid " + dir + "/pid; error_log stderr; events {}\nhttp { access_log off; client_body_temp_path " + dir +
		"/body; proxy_temp_path " + dir + "/proxy; fastcgi_temp_path " + dir + "/f; uwsgi_temp_path " + dir + "/u; scgi_temp_path " + dir + "/s;\n" + text + "}\n"
	file := filepath.Join(dir, "nginx.conf")
	writeFile(t, file, text)
	if said, err := exec.Command("nginx", "-t", "-p", dir, "-c", file).CombinedOutput(); err != nil {
		t.Fatalf("nginx -t: %v: %s", err, said)
	}
	program := exec.Command("nginx", "-p", dir, "-c", file)
	program.Stderr = t.Output()
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Signal(os.Interrupt) // nginx ends at once
		_ = program.Wait()
	})
	await(t, "nginx listens", func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return cells, "http://" + listen
}
