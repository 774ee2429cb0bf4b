// Native addons in the threads of a process.
const { readFileSync } = require('node:fs')
const { constants } = require('node:os')

/** The system keeps what it has loaded. Sources: bits/dlfcn.h of glibc, dlfcn.h of macOS, which Node does not name. */
const RTLD_NODELETE = process.platform === 'darwin' ? 0x80 : 0x1000
/** Node finds what it has to call by such a name, as often as it likes. Other addons tell it when their library is loaded, which would be once. */
const NAMES = ['napi_register_module_v', 'node_register_module_v']

/**
 * Keeps the libraries of addons when a thread ends. Node lets go of them with the last thread that has loaded them, whatever of theirs still runs: a
 * thread of their own, a callback of V8. `@sentry/profiling-node` ended the process by SIGSEGV so.
 */
exports.keepAddons = () => {
  if (process.platform === 'win32') return
  const { dlopen } = process
  process.dlopen = (module, path, flags = constants.dlopen.RTLD_LAZY) =>
    dlopen.call(process, module, path, isFoundByName(path) ? flags | RTLD_NODELETE : flags)
}

function isFoundByName(path) {
  try {
    const library = readFileSync(path)
    return NAMES.some((name) => library.includes(name))
  } catch {
    // Node says what is wrong with it.
    return false
  }
}
