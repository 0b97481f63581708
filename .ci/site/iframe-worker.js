// Browsers run no workers for pages that are opened from a disk. There, a hidden frame runs the script of the search.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.started = new Promise((done) => {
        frame.onload = () => {
          const { contentWindow, contentDocument } = frame;
          contentWindow.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = contentDocument.createElement("script");
          script.src = url;
          script.onload = () => done(contentWindow);
          contentDocument.body.append(script);
        };
      });
      document.body.append(frame);
    }
    async postMessage(data) {
      (await this.started).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
