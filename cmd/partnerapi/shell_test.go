package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// shell runs the commands of the guides' examples: assignments, curl with jq behind
// it, and programs that the guide shows. It knows of each no more than the guides
// use, and takes anything else for a mistake.
type shell struct {
	vars map[string]string
	// base is the address in the examples, and address the service's own.
	base, address string
	// dir is where the guide's programs are.
	dir string

	transport *http.Transport
	wire      record
}

// newShell has the variables and the folder of the guide's other shells.
func newShell(vars map[string]string, dir, base, address string) *shell {
	s := &shell{vars: vars, dir: dir, base: base, address: address}
	s.transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return recorded{conn, &s.wire}, err
	}}
	return s
}

// record keeps what was read from a connection: http.Response has the names of headers in
// another case than the wire.
type record struct {
	mu   sync.Mutex
	read []byte
}

// take returns what was read, and forgets it.
func (r *record) take() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.read
	r.read = nil
	return read
}

type recorded struct {
	net.Conn
	record *record
}

func (c recorded) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.record.mu.Lock()
	defer c.record.mu.Unlock()
	c.record.read = append(c.record.read, b[:n]...)
	return n, err
}

var assignment = regexp.MustCompile(`(?s)^([A-Z][A-Z_]*)=(.*)$`)

// run runs commands, one a line or with \ at the end of a line that goes on,
// and returns what they print. What a command prints ends with a newline.
func (s *shell) run(script string) (string, error) {
	var out strings.Builder
	script = strings.ReplaceAll(script, "\\\n", " ")
	if loop := while.FindStringSubmatchIndex(script); loop != nil {
		return s.loop(script[:loop[0]], script[loop[2]:loop[3]], script[loop[4]:loop[5]], script[loop[6]:loop[7]], script[loop[1]:])
	}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if set := assignment.FindStringSubmatch(line); set != nil {
			if err := s.assign(set[1], set[2]); err != nil {
				return "", fmt.Errorf("%s: %w", line, err)
			}
			continue
		}
		text, err := s.pipeline(line)
		if err != nil {
			return "", fmt.Errorf("%s: %w", line, err)
		}
		out.WriteString(text)
		if text != "" && !strings.HasSuffix(text, "\n") {
			out.WriteByte('\n')
		}
	}
	return out.String(), nil
}

// while is a loop over commands that goes on as long as a variable has a value.
var while = regexp.MustCompile(`(?ms)^while \[ "\$([A-Z_]+)" = ([a-z]+) \]; do\n(.*?)^done\n`)

// loop runs a script with a loop in it, at most a few times.
func (s *shell) loop(before, name, value, body, after string) (string, error) {
	out, err := s.run(before)
	for turns := 0; err == nil && s.vars[name] == value; turns++ {
		var text string
		if text, err = s.run(body); turns == 5 {
			err = fmt.Errorf("$%s stays %s", name, value)
		}
		out += text
	}
	if err != nil {
		return "", err
	}
	text, err := s.run(after)
	return out + text, err
}

// assign sets a variable to a word, or to what a command prints.
func (s *shell) assign(name, value string) error {
	if command, ok := strings.CutPrefix(value, "$("); ok && strings.HasSuffix(command, ")") {
		text, err := s.pipeline(strings.TrimSuffix(command, ")"))
		s.vars[name] = strings.TrimRight(text, "\n")
		if err == nil && (s.vars[name] == "" || s.vars[name] == "null") {
			err = fmt.Errorf("it prints nothing")
		}
		return err
	}
	words, err := s.words(value)
	if err == nil && len(words) != 1 {
		err = fmt.Errorf("%d words are assigned", len(words))
	}
	if err == nil {
		s.vars[name] = words[0].text
	}
	return err
}

func (s *shell) pipeline(line string) (text string, err error) {
	words, err := s.words(line)
	if err != nil {
		return "", err
	}
	for i, command := range split(words) {
		switch {
		case len(command) == 0:
			return "", fmt.Errorf("a command is empty")
		case command[0] == "curl" && i == 0:
			text, err = s.curl(command[1:])
		case command[0] == "sleep" && len(command) == 2:
		case command[0] == "echo" && len(command) == 2:
			text = command[1] + "\n"
		case slices.Equal(command, []string{"grep", "-i", "^date:"}) && i > 0:
			text = dateLine.FindString(text)
		case slices.Equal(command, []string{"cut", "-c", "7-35"}) && i > 0 && len(text) >= 35:
			text = text[6:35] + "\n"
		case command[0] == "jq" && (i > 0 || command[1] == "-nr"):
			text, err = runJQ(command[1:], text)
		case slices.Contains(interpreters, command[0]) && len(command) == 2 && i == 0:
			text, err = s.program(command[0], command[1])
		case command[0] == "head" && len(command) == 4 && command[1] == "-c" && i == 0:
			text, err = s.head(command[2], command[3])
		default:
			err = fmt.Errorf("%s cannot be run here", command[0])
		}
		if err != nil {
			return "", err
		}
	}
	return text, nil
}

// word is a word of a command; pipe says that it is |.
type word struct {
	text string
	pipe bool
}

// split cuts words at the pipes.
func split(words []word) [][]string {
	commands := [][]string{nil}
	for _, w := range words {
		if w.pipe {
			commands = append(commands, nil)
			continue
		}
		last := len(commands) - 1
		commands[last] = append(commands[last], w.text)
	}
	return commands
}

// dateLine is the header with the time of an answer.
var dateLine = regexp.MustCompile(`(?im)^date:.*$`)

var variable = regexp.MustCompile(`\$([A-Z][A-Z_]*)`)

// words splits a line as a shell does, with '…', "…" and variables in the
// latter and outside quotes.
func (s *shell) words(line string) (words []word, err error) {
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] == '|' {
			words, line = append(words, word{pipe: true}), line[1:]
			continue
		}
		var text strings.Builder
		for line != "" && line[0] != ' ' && line[0] != '|' {
			quote := line[0]
			if quote != '\'' && quote != '"' {
				end := strings.IndexAny(line, " '\"|")
				if end < 0 {
					end = len(line)
				}
				if strings.ContainsAny(line[:end], "&;<>*?`(){}\\") {
					return nil, fmt.Errorf("%s needs quotes", line[:end])
				}
				text.WriteString(s.expand(line[:end], &err))
				line = line[end:]
				continue
			}
			inside, rest, ok := strings.Cut(line[1:], string(quote))
			if !ok || quote == '"' && strings.ContainsAny(inside, "\\`") {
				return nil, fmt.Errorf("quotes are not closed, or hold what this shell does not know")
			}
			if quote == '"' {
				inside = s.expand(inside, &err)
			}
			text.WriteString(inside)
			line = rest
		}
		words = append(words, word{text: text.String()})
	}
	return words, err
}

func (s *shell) expand(text string, err *error) string {
	return variable.ReplaceAllStringFunc(text, func(name string) string {
		value, ok := s.vars[name[1:]]
		if !ok {
			*err = fmt.Errorf("%s is not set", name)
		}
		return value
	})
}

// head is the first bytes of a file.
func (s *shell) head(bytes, file string) (string, error) {
	n, err := strconv.Atoi(bytes)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	return string(text[:min(n, len(text))]), err
}

// curl sends a request. It knows -s, -sf, -i, -X, -H, -d, -o, and -D - beside -o.
func (s *shell) curl(args []string) (string, error) {
	method, body, address, file, include, dump := "", "", "", "", false, false
	header := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	for len(args) > 0 {
		option := args[0]
		args = args[1:]
		if slices.Contains([]string{"-X", "-H", "-d", "-o", "-D"}, option) && len(args) == 0 {
			return "", fmt.Errorf("%s lacks its value", option)
		}
		switch {
		case option == "-s", option == "-sf":
		case option == "-D" && args[0] == "-":
			dump, args = true, args[1:]
		case option == "-i":
			include = true
		case option == "-X":
			method, args = args[0], args[1:]
		case option == "-d":
			body, args = args[0], args[1:]
		case option == "-o":
			file, args = args[0], args[1:]
		case option == "-H":
			name, value, ok := strings.Cut(args[0], ": ")
			if !ok {
				return "", fmt.Errorf("%q is no header", args[0])
			}
			header.Add(name, value)
			args = args[1:]
		case strings.HasPrefix(option, "-"), address != "":
			return "", fmt.Errorf("curl with %s cannot be run here", option)
		default:
			address = option
		}
	}
	if method == "" {
		method = http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
	}
	path, ok := strings.CutPrefix(address, s.base)
	if !ok {
		return "", fmt.Errorf("%q does not begin with %s", address, s.base)
	}
	text, err := s.send(method, path, body, header, include || dump)
	head := ""
	if dump {
		head, text, _ = strings.Cut(text, "\n\n")
	}
	if err != nil || file == "" {
		return strings.ReplaceAll(text, s.address, s.base), err
	}
	return head, os.WriteFile(filepath.Join(s.dir, file), []byte(text), 0o600)
}

func (s *shell) send(method, path, body string, header http.Header, include bool) (string, error) {
	req, err := http.NewRequest(method, s.address+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header = header
	s.wire.take()
	answer, err := s.transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var out bytes.Buffer
	if include {
		head, _, _ := bytes.Cut(s.wire.take(), []byte("\r\n\r\n"))
		out.Write(head)
		out.WriteString("\n\n")
	}
	_, err = io.Copy(&out, answer.Body)
	return strings.ReplaceAll(out.String(), "\r\n", "\n"), err
}

// What runs the programs of guides, by the language of their block.
var (
	languages    = map[string]string{"python": "python3", "js": "node", "go": "go", "php": "php", "ruby": "ruby"}
	interpreters = []string{"python3", "node", "php", "ruby"}
	extensionOf  = map[string]string{"python3": ".py", "node": ".mjs", "go": ".go", "php": ".php", "ruby": ".rb"}
)

// errMissing says that an interpreter is not installed.
var errMissing = errors.New("is not installed")

// ownFile is the comment at the head of a program that gives its file.
var ownFile = regexp.MustCompile(`^(?:#|//) ([a-z-]+\.[a-z]+)\n`)

// save writes a program of a guide to its file, with the service's address in it.
func (s *shell) save(interpreter, code string) (file string, err error) {
	file = "main" + extensionOf[interpreter]
	if found := ownFile.FindStringSubmatch(code); found != nil {
		file = found[1]
	}
	code = strings.ReplaceAll(code, s.base, s.address)
	return file, os.WriteFile(filepath.Join(s.dir, file), []byte(code), 0o600)
}

// program runs a program that the guide showed, with an empty environment.
func (s *shell) program(interpreter, file string) (string, error) {
	path, err := exec.LookPath(interpreter)
	if err != nil {
		return "", fmt.Errorf("%s %w", interpreter, errMissing)
	}
	cmd := exec.Command(path, file)
	if interpreter == "go" {
		cmd = exec.Command(path, "run", file)
	}
	cmd.Dir = s.dir
	for _, name := range []string{"PATH", "HOME", "GOCACHE", "GOPATH", "GOMODCACHE", "GOROOT"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	var failure bytes.Buffer
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", interpreter, file, err, &failure)
	}
	return strings.ReplaceAll(string(out), s.address, s.base), nil
}
