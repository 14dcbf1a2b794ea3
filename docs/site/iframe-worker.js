// Search works in a page that was opened from disk: a browser starts no worker there, so the worker runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      this.inside = this.frame.contentWindow;
      this.heard = (event) => {
        if (event.source !== this.inside) return;
        const passed = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(passed);
        if (this.onmessage) this.onmessage(passed);
      };
      window.addEventListener("message", this.heard);
      const load = `(...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {
        const script = document.createElement("script");
        script.src = url; script.onload = done; document.body.appendChild(script);
      })), Promise.resolve())`;
      const text = `window.postMessage = (data) => parent.postMessage(data, "*"); window.importScripts = ${load};`;
      this.inside.document.open();
      this.inside.document.write(`<!doctype html><body><script>${text} window.ready = importScripts(${JSON.stringify(String(url))});<\/script>`);
      this.inside.document.close();
      this.ready = this.inside.ready;
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      window.removeEventListener("message", this.heard);
      this.frame.remove();
    }
  };
}
