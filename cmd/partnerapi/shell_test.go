package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// shell runs the commands of a guide's examples. curl and jq are functions of the
// test, so that their answers are the same on every machine.
type shell struct {
	// base is the address in the examples, and address the service's own.
	base, address string
	// dir has the guide's programs and files.
	dir string

	runner *interp.Runner
	out    bytes.Buffer
	sleeps int
	// failure is what a command of the test's own met: the runner keeps only the
	// status of what runs in a pipeline.
	failure error
}

func newShell(dir, base string) (*shell, error) {
	s := &shell{base: base, dir: dir}
	runner, err := interp.New(
		interp.Params("-eu", "-o", "pipefail"), interp.Dir(dir),
		interp.Env(expand.ListEnviron("PATH="+os.Getenv("PATH"))),
		interp.StdIO(nil, &s.out, io.Discard), interp.ExecHandlers(s.commands))
	s.runner = runner
	return s, err
}

// run runs commands and returns what they print. What each prints ends with a newline.
func (s *shell) run(script string) (string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return "", err
	}
	s.out.Reset()
	s.failure, s.sleeps = nil, 0
	for _, statement := range file.Stmts {
		if err := s.runner.Run(context.Background(), statement); err != nil || s.failure != nil {
			return "", fmt.Errorf("line %d: %w", statement.Pos().Line(), errors.Join(s.failure, err))
		}
		call, _ := statement.Cmd.(*syntax.CallExpr)
		for i := 0; call != nil && len(call.Args) == 0 && i < len(call.Assigns); i++ {
			name := call.Assigns[i].Name.Value
			if call.Assigns[i].Value == nil {
				continue
			}
			if value := s.runner.Vars[name].String(); value == "" || value == "null" {
				return "", fmt.Errorf("line %d: $%s is %q", statement.Pos().Line(), name, value)
			}
		}
		if printed := s.out.Bytes(); len(printed) > 0 && printed[len(printed)-1] != '\n' {
			s.out.WriteByte('\n')
		}
	}
	return s.out.String(), nil
}

// commands runs what the guides use. Other programs are an error: a reader may lack them.
func (s *shell) commands(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) (err error) {
		io := interp.HandlerCtx(ctx)
		switch name := args[0]; {
		case name == "curl":
			err = s.curl(args[1:], io.Stdout)
		case name == programPath:
			err = s.own(args[1:], io)
		case name == "jq":
			err = s.jq(args[1:], io.Stdin, io.Stdout)
		case name == "sleep":
			if s.sleeps++; s.sleeps > 5 {
				err = errors.New("the loop does not end")
			}
		case slices.Contains(interpreters, name) && len(args) == 2:
			var programs *shell
			var text string
			if programs, err = s.folder(name); err == nil {
				text, err = programs.program(name, args[1])
			}
			fmt.Fprint(io.Stdout, text)
		case slices.Contains([]string{"awk", "cut", "diff", "grep", "head", "sort"}, name):
			return next(ctx, args)
		default:
			err = errors.New("cannot be run here")
		}
		if err != nil {
			s.failure = fmt.Errorf("%s: %w", args[0], err)
			return interp.ExitStatus(1)
		}
		return nil
	}
}

// own runs this program, in a process of its own with the shell's variables for it.
func (s *shell) own(args []string, in interp.HandlerContext) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	in.Env.Each(func(name string, v expand.Variable) bool {
		if strings.HasPrefix(name, "PARTNERAPI_") {
			cmd.Env = append(cmd.Env, name+"="+v.String())
		}
		return true
	})
	var failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = in.Stdout, &failure
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, &failure)
	}
	return nil
}

// curl sends a request. Options may follow the address.
func (s *shell) curl(args []string, out io.Writer) error {
	header := http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}}
	options := flag.NewFlagSet("curl", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	options.Bool("s", false, "")
	fail, include := options.Bool("sf", false, ""), options.Bool("i", false, "")
	method, body := options.String("X", "", ""), options.String("d", "", "")
	file, dump := options.String("o", "", ""), options.String("D", "", "")
	options.Func("H", "", func(line string) error {
		name, value, ok := strings.Cut(line, ": ")
		if header.Add(name, value); !ok {
			return fmt.Errorf("%q is no header", line)
		}
		return nil
	})
	address := ""
	for len(args) > 0 {
		if err := options.Parse(args); err != nil {
			return err
		}
		if args = options.Args(); len(args) > 0 {
			if address != "" {
				return fmt.Errorf("there are two addresses, %s and %s", address, args[0])
			}
			address, args = args[0], args[1:]
		}
	}
	if *method == "" && *body != "" {
		*method = http.MethodPost
	}
	path, ok := strings.CutPrefix(address, s.base)
	if !ok {
		return fmt.Errorf("%q does not begin with %s", address, s.base)
	}
	req, err := http.NewRequest(*method, s.address+path, strings.NewReader(*body))
	if err != nil {
		return err
	}
	req.Header = header
	head, text, err := s.send(req, *fail)
	if err != nil {
		return err
	}
	if *include || *dump == "-" {
		fmt.Fprint(out, head)
	}
	if *file != "" {
		return os.WriteFile(filepath.Join(s.dir, *file), []byte(text), 0o600)
	}
	_, err = io.WriteString(out, strings.ReplaceAll(text, s.address, s.base))
	return err
}

// send returns the head of the answer as it was on the wire, as http.Response has the
// names of headers in another case, and its body.
func (s *shell) send(req *http.Request, fail bool) (head, body string, err error) {
	conn, err := net.Dial("tcp", req.URL.Host)
	if err != nil {
		return "", "", err
	}
	defer conn.Close()
	if err := req.Write(conn); err != nil {
		return "", "", err
	}
	var wire bytes.Buffer
	answer, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &wire)), req)
	if err != nil {
		return "", "", err
	}
	defer answer.Body.Close()
	head, _, _ = strings.Cut(wire.String(), "\r\n\r\n")
	text, err := io.ReadAll(answer.Body)
	if err == nil && fail && answer.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("status %s", answer.Status)
	}
	return strings.ReplaceAll(head, "\r\n", "\n") + "\n\n", string(text), err
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

// folder returns a shell for the programs of an interpreter. Those of Python share the folder of the commands, others
// have one of their own: the same program in two languages keeps its files under the same names.
func (s *shell) folder(interpreter string) (*shell, error) {
	if interpreter == "python3" {
		return s, nil
	}
	dir := filepath.Join(s.dir, interpreter)
	return &shell{base: s.base, address: s.address, dir: dir}, os.MkdirAll(dir, 0o700)
}

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
