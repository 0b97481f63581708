import { defineConfig } from "vite";

// The names of the built files have no hashes: they are committed, and the server gives them an ETag.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    assetsDir: "desk",
    modulePreload: false,
    license: { fileName: "desk/licenses.md" }, // of the packages in the built files
    target: "es2022",
    rollupOptions: {
      output: {
        entryFileNames: "desk/[name].js",
        chunkFileNames: "desk/[name].js",
        assetFileNames: "desk/[name][extname]",
      },
    },
  },
});
