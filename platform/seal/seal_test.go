package seal_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"partnerapi/platform/seal"
)

var place = seal.Context("directory", "0197-one")

func parse(t *testing.T, list string) *seal.Keys {
	t.Helper()
	keys, err := seal.ParseKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func sealed(t *testing.T, keys *seal.Keys, plain string) []byte {
	t.Helper()
	value, err := keys.Seal([]byte(plain), place)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func opens(t *testing.T, keys *seal.Keys, value []byte, plain string) {
	t.Helper()
	if got, err := keys.Open(value, place); err != nil || string(got) != plain {
		t.Errorf("%q: %v", got, err)
	}
}

func refuses(t *testing.T, keys *seal.Keys, value, context []byte, want error) {
	t.Helper()
	if plain, err := keys.Open(value, context); !errors.Is(err, want) || plain != nil {
		t.Errorf("%q: %v, not %v", plain, err, want)
	}
}

// TestSeal seals, and opens what is as it was sealed only.
func TestSeal(t *testing.T) {
	t.Parallel()
	keys := parse(t, seal.NewKey())
	for _, plain := range []string{"", "s3cr3t", strings.Repeat("long", 10_000)} {
		value, again := sealed(t, keys, plain), sealed(t, keys, plain)
		opens(t, keys, value, plain)
		if bytes.Equal(value, again) || len(plain) > 3 && bytes.Contains(value, []byte(plain[:4])) {
			t.Errorf("sealed as %x and %x", value, again)
		}
	}
	value := sealed(t, keys, "s3cr3t")
	for i := range value {
		altered := bytes.Clone(value)
		altered[i] ^= 1
		want := seal.ErrAltered
		if i >= 1 && i <= 8 { // the id of the key
			want = seal.ErrOtherKey
		}
		refuses(t, keys, altered, place, want)
		refuses(t, keys, value[:i], place, seal.ErrAltered)
	}
	refuses(t, keys, append(bytes.Clone(value), 0), place, seal.ErrAltered)
	refuses(t, keys, value, seal.Context("directory", "0197-two"), seal.ErrAltered)
	refuses(t, keys, value, seal.Context("webhook", "0197-one"), seal.ErrAltered)
	refuses(t, keys, value, nil, seal.ErrAltered)
	refuses(t, parse(t, seal.NewKey()), value, place, seal.ErrOtherKey)
	refuses(t, nil, value, place, seal.ErrNoKey)
	if _, err := (*seal.Keys)(nil).Seal(nil, nil); !errors.Is(err, seal.ErrNoKey) {
		t.Error(err)
	}
}

// TestSealedForm pins the form, which is that of what databases hold.
func TestSealedForm(t *testing.T) {
	t.Parallel()
	keys := parse(t, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	value := sealed(t, keys, "s3cr3t")
	// 630dcd29…: SHA-256 of the bytes 0 to 31.
	if !bytes.HasPrefix(value, []byte{1, 0x63, 0x0d, 0xcd, 0x29, 0x66, 0xc4, 0x33, 0x66}) || len(value) != 9+12+6+16 {
		t.Errorf("%x", value)
	}
	if prefix, err := keys.Prefix(); err != nil || !bytes.HasPrefix(value, prefix) || len(prefix) != 9 {
		t.Errorf("%x: %v", prefix, err)
	}
}

// TestOlderKeys has values of two keys beside each other.
func TestOlderKeys(t *testing.T) {
	t.Parallel()
	older, newer := seal.NewKey(), seal.NewKey()
	value := sealed(t, parse(t, older), "s3cr3t")
	both := parse(t, newer+", "+older)
	opens(t, both, value, "s3cr3t")
	again, err := both.Reseal(value, place)
	if err != nil {
		t.Fatal(err)
	}
	opens(t, parse(t, newer), again, "s3cr3t")
	refuses(t, parse(t, older), again, place, seal.ErrOtherKey)
	if _, err := both.Reseal(again[:20], place); !errors.Is(err, seal.ErrAltered) {
		t.Error(err)
	}
}

// TestParseKeys refuses what is no key, and shows nothing of it.
func TestParseKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	one, two := seal.NewKey(), seal.NewKey()
	if strings.Contains(one, ",") || len(one) != 44 || one == two {
		t.Errorf("new keys: %s and %s", one, two)
	}
	for list, word := range map[string]string{
		"": "empty", "sesame": "base64", one[:43]: "base64", one + ",": "empty", "c2VzYW1l": "6 bytes instead of 32", one + two: "base64",
		one + ";" + two: "base64", "file:" + filepath.Join(dir, "none"): "no such file", file("empty", " \n"): "no encryption key in " + dir,
		file("wrong", one+"\nsesame\n"): "base64", "file:" + dir: "directory",
	} {
		_, err := seal.ParseKeys(list)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: the error does not say %q: %v", list, word, err)
		} else if strings.Contains(err.Error(), "sesame") || strings.Contains(err.Error(), one[:20]) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	value := sealed(t, parse(t, two), "s3cr3t")
	for _, list := range []string{two, " " + two + " ", one + "," + two, file("one", two), file("lines", one+"\r\n"+two+"\r\n"), one + "," + file("x", two+"\n")} {
		opens(t, parse(t, list), value, "s3cr3t")
	}
}

// TestFileKeys makes a file at the first start, once, and follows its changes.
func TestFileKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "encryption.key")
	var all [16]*seal.Keys
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() {
			var err error
			if all[i], err = seal.FileKeys(path); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	value := sealed(t, all[0], "s3cr3t")
	for _, keys := range all {
		opens(t, keys, value, "s3cr3t")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v: %v", info.Mode(), err)
	}

	if err := seal.AddKey(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v: %v", info.Mode(), err)
	}
	later := sealed(t, all[0], "later") // by a process that has been running
	if later[1] == value[1] && bytes.Equal(later[:9], value[:9]) {
		t.Error("the older key is still the current one")
	}
	fresh, err := seal.FileKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	opens(t, fresh, later, "later")
	opens(t, fresh, value, "s3cr3t")

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	opens(t, all[1], value, "s3cr3t")
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) > 0 {
		t.Errorf("%v: %v", left, err)
	}
	if _, err := seal.FileKeys(filepath.Join(path, "below", "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := seal.AddKey(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestSignLeavesInput: the bytes behind the signed ones are the caller's, and stay as they are.
func TestSignLeavesInput(t *testing.T) {
	secret, text := []byte("a secret"), bytes.Repeat([]byte("a"), 64)
	token := seal.Sign(secret, "test", text[:4])
	if signed, ok := seal.Verify(secret, "test", token, 4); !ok || string(signed) != "aaaa" {
		t.Errorf("%q %v", signed, ok)
	}
	if !bytes.Equal(text, bytes.Repeat([]byte("a"), 64)) {
		t.Errorf("Sign wrote over its input: %q", text)
	}
}
