import { useState } from "preact/hooks";

// Command is a text to copy.
export function Command(props: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => navigator.clipboard.writeText(props.text).then(() => setCopied(true), () => setCopied(false));
  return (
    <div class="command">
      <pre tabIndex={0}>{props.text}</pre>
      {"clipboard" in navigator ? <button type="button" onClick={copy}>{copied ? "Copied" : "Copy"}</button> : null}
    </div>
  );
}
