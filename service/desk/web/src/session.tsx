import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { get, Problem, request, signedOut } from "./api";
import { Card, Failure } from "./ui";
import { unsaved } from "./unsaved";

// Session says who is signed in: see Session of the OpenAPI document.
export interface Session {
  required: boolean;
  key?: string;
  scopes: string[];
  placements?: string[];
  expires?: string;
  ended?: boolean; // while a form with changes stays on the page
}

export const SessionContext = createContext<Session>({ required: false, scopes: [] });

// useMay reports whether the reader's key has a scope.
export function useMay(scope: "read" | "decide" | "outcome" | "admin"): boolean {
  return useContext(SessionContext).scopes.includes(scope);
}

// useSession asks who is signed in, and again when an answer says that nobody is.
export function useSession(): { session?: Session; failure?: unknown; change: (to: Session) => void } {
  const [state, set] = useState<{ session?: Session; failure?: unknown }>({});
  useEffect(() => {
    const ask = () => get<Session>("v1/session").then((session) => set((before) => {
      const ended = session.required && session.key === undefined && before.session?.key !== undefined && unsaved();
      return { session: ended ? { ...before.session!, ended } : session };
    }), (failure) => set({ failure }));
    void ask();
    addEventListener(signedOut, ask);
    return () => removeEventListener(signedOut, ask);
  }, []);
  return { ...state, change: (session) => set({ session }) };
}

// SignIn asks for a key. The key leaves the page with the request, and nothing keeps it. again says that
// a form on the page waits, which changes settings of the placement name, or makes a placement.
export function SignIn(props: { done: (session: Session) => void; again?: boolean; name?: string | undefined }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (props.again) field.current?.focus();
  }, []);
  const [failure, fail] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const key = new FormData(form).get("key");
    form.reset();
    fail(undefined);
    setBusy(true);
    try {
      const session = await request<Session>("POST", "v1/session", { body: { key } });
      if (props.again && (!session.scopes.includes("admin") || (props.name && session.placements?.includes(props.name) === false))) {
        await request("DELETE", "v1/session");
        throw new Error("This key may not change settings. Sign in with another one.");
      }
      props.done(session);
    } catch (problem) {
      fail(problem);
      setBusy(false);
      form.querySelector("input")?.focus();
    }
  };
  return (
    <Card title="Sign in">
      <form class="stack" onSubmit={submit}>
        {props.again ? <p>Your session has ended. The form below keeps your changes: sign in, and go on with it.</p> : null}
        <label for="key">API key</label>
        <input ref={field} id="key" name="key" type="password" autocomplete="off" required spellcheck={false} aria-describedby="key-help" />
        <p class="empty" id="key-help">
          <code>vitrine keys add keys.toml desk --scopes read,admin</code> makes one. The page does not keep it: a cookie stands for it for twelve hours, or until the service restarts.
        </p>
        {failure ? <Failure of={failure instanceof Problem && failure.status === 401 ? "This key is unknown, or was removed." : failure} /> : null}
        <div><button class="main" disabled={busy}>Sign in</button></div>
      </form>
    </Card>
  );
}
