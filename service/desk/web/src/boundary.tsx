import { Component, type ComponentChildren } from "preact";
import { Failure } from "./ui";

// Boundary shows an error of what is in it, so that the rest of the page stays. The reader can try again.
export class Boundary extends Component<{ children: ComponentChildren }, { failure?: unknown }> {
  override state: { failure?: unknown } = {};

  static override getDerivedStateFromError(failure: unknown) {
    return { failure };
  }

  override render() {
    if (this.state.failure === undefined) return this.props.children;
    return (
      <section class="card">
        <h2>This view has failed</h2>
        <Failure of={this.state.failure} />
        <button type="button" onClick={() => this.setState({ failure: undefined })}>Try again</button>
      </section>
    );
  }
}
