// Package browsertest looks at the desk in Chromium: make browser runs it, make screenshots takes pictures.
package browsertest

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"vitrine/internal/fatal"
	"vitrine/internal/long"
)

// patience bounds the wait for a condition of a page. It is long because only failures wait for all of it.
const patience = 60 * time.Second

// chromium is the browser that all tests share.
var chromium struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(code)
}

// browser returns the running browser. It skips the test without the flag, and fails it without a browser.
func browser(t *testing.T) context.Context {
	t.Helper()
	long.Test(t)
	chromium.once.Do(func() {
		path := ""
		for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
			if path, chromium.err = exec.LookPath(name); chromium.err == nil {
				break
			}
		}
		if chromium.err != nil {
			return
		}
		options := []chromedp.ExecAllocatorOption{
			chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		}
		for _, name := range []string{"disable-quic", "disable-background-networking", "disable-component-update",
			"disable-sync", "disable-extensions", "hide-scrollbars", "disable-dev-shm-usage"} {
			options = append(options, chromedp.Flag(name, true))
		}
		allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		chromium.ctx, chromium.stop, chromium.err = ctx, func() { cancel(); end() }, chromedp.Do(ctx)
	})
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	return chromium.ctx
}

// tab is a tab of the browser, which notes what must not happen.
type tab struct {
	*testing.T
	ctx  context.Context
	base string // of the service: "http://127.0.0.1:1234/"

	visits   int
	careless bool // whether problems are expected until the end

	mu       sync.Mutex
	problems []string
	stays    bool     // whether a question of the page is answered with no
	asked    []string // its questions
}

// watcher notes violations of the Content-Security-Policy before scripts of the page run.
const watcher = `addEventListener("securitypolicyviolation", (e) => console.error("violates the policy: " + e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile));
addEventListener("unhandledrejection", (e) => console.error("unhandled rejection: " + e.reason));`

// open opens a tab, which is closed at the end of the test. The test fails if the page logs an error, violates its
// policy or asks another host, unless the test takes these problems first.
func open(t *testing.T, base string) *tab {
	t.Helper()
	parent := browser(t)
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	b := &tab{T: t, ctx: ctx, base: base}
	host := must(url.Parse(base)).Host
	if err := chromedp.Do(ctx); err != nil { // opens the tab, which lives as long as this context
		t.Fatal(err)
	}
	fatal.If(t, chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			text := e.ExceptionDetails.Text
			if x := e.ExceptionDetails.Exception; x != nil {
				text += " " + x.Description
			}
			b.note("exception: %s", text)
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
				var words []string
				for _, a := range e.Args {
					words = append(words, string(a.Value)+a.Description)
				}
				b.note("console: %s", strings.Join(words, " "))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" || e.Entry.Level == "warning" {
				b.note("log: %s %s", e.Entry.Text, e.Entry.URL)
			}
		case *page.EventJavascriptDialogOpening:
			b.mu.Lock()
			b.asked = append(b.asked, string(e.Type)+": "+e.Message)
			yes := !b.stays
			b.mu.Unlock()
			go func() { // or the tab waits for the answer of its own listener
				_, _ = chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: yes})
			}()
		case *network.EventRequestWillBeSent:
			if to, err := url.Parse(e.Request.URL); err != nil || to.Scheme != "data" && to.Scheme != "about" &&
				to.Host != host {
				b.note("a request to %s", e.Request.URL)
			}
		}
	}))
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watcher})
	call(b, network.Enable, network.EnableParams{})
	b.do(chromedp.EmulateViewport(1280, 900))
	t.Cleanup(func() {
		for _, p := range b.take() {
			if !b.careless {
				t.Error(p)
			}
		}
		cancel()
	})
	return b
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (b *tab) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// take returns the problems up to now, and forgets them.
func (b *tab) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.problems
	b.problems = nil
	return taken
}

// do runs actions.
func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatalf("%v", err)
	}
}

// call sends a command of the protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	result, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.Fatalf("%v", err)
	}
	return result
}

// eval evaluates an expression, also one of a promise, and decodes its value. The page's policy does not hold for it.
func eval[T any](b *tab, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%.300s: %v", expression, err)
	}
	return v
}

// run evaluates an expression for its effects.
func (b *tab) run(expression string) {
	b.Helper()
	eval[bool](b, "(("+expression+"), true)")
}

// wait waits until an expression of the page is true.
func (b *tab) wait(expression string) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithDeadline(b.ctx, deadline)
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		if ok && err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("never true: %s (%v); the page has:\n%s", expression, err,
				eval[string](b, "document.body?.innerText.slice(0, 2000) ?? ''"))
		}
	}
}

// rendered is true for a complete view.
const rendered = `document.querySelector("main h1") && ![...document.querySelectorAll("main [role=status]")].some((e) => e.innerText === "Loading…")`

// rewrites changes the service's answers to the tab's later documents: if an address to satisfies when, change runs on the
// answer v. Both are JavaScript.
func (b *tab) rewrites(when, change string) {
	b.Helper()
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `{
		const ask = fetch;
		fetch = async (at, o) => {
			const answer = await ask(at, o), to = String(at);
			if (!(` + when + `)) return answer;
			const v = await answer.json();
			` + change + `
			return Response.json(v);
		};
	}`})
}

// visit goes to a view, "/placements/auto", as a new page.
func (b *tab) visit(view string) {
	b.Helper()
	b.visits++
	at := fmt.Sprintf("%s?visit=%d#%s", b.base, b.visits, view) // another document, and not only another view
	call(b, page.Navigate, page.NavigateParams{URL: at})
	b.wait("location.href === " + quote(at) + " && " + rendered)
}

// text returns the text that the view shows.
func (b *tab) text() string {
	b.Helper()
	return eval[string](b, `document.querySelector("main").innerText`)
}

// quote writes a string of JavaScript.
func quote(s string) string { return fmt.Sprintf("%q", s) }

// button is an expression that finds a button by its text.
func button(text string) string {
	return `[...document.querySelectorAll("main button")].find((b) => b.innerText.trim() === ` + quote(text) +
		` && !b.disabled)`
}

// on runs an action on an element, which the action calls e, once the element is there. The page cannot draw between the
// two.
func (b *tab) on(element, action string) {
	b.Helper()
	b.wait("((e) => e && (" + action + ", true))(" + element + ")")
}

// press presses a button once it is there.
func (b *tab) press(text string) {
	b.Helper()
	b.on(button(text), "e.click()")
}

// dress sets the width and the colours of the page.
func (b *tab) dress(width int, scheme string) {
	b.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	b.do(chromedp.EmulateViewport(int64(width), 900))
}

// capture returns a picture of the window, or of the whole page, as PNG.
func (b *tab) capture(whole bool) []byte {
	b.Helper()
	action := chromedp.CaptureScreenshot()
	if whole {
		action = chromedp.FullScreenshot(100)
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	shot, err := chromedp.Run(ctx, action)
	fatal.If(b, err)
	return shot
}

// shoot writes a picture of the whole page.
func (b *tab) shoot(path string) {
	b.Helper()
	fatal.If(b, os.MkdirAll(filepath.Dir(path), 0o755))
	fatal.If(b, os.WriteFile(path, b.capture(true), 0o644))
}
