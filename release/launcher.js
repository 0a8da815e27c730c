#!/usr/bin/env node
// Starts the program of the package for this platform, with the same arguments and streams.
"use strict";
const { spawn } = require("child_process");
const os = require("os");

const name = `pitot-llm-${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "pitot.exe" : "pitot";
let program;
try {
  program = require.resolve(`${name}/bin/${file}`);
} catch {
  console.error(`pitot: the package ${name} is not installed. npm installs it as an optional dependency on a supported platform.`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // A terminal sends a signal to both. Pitot takes two at once for one.
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`pitot: start ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  process.exit(signal ? 128 + os.constants.signals[signal] : code);
});
