// The settings that are read before the runtime reads them all: whether there is a guardian, and for how many processes.
const { readFileSync } = require('node:fs')
const { parseEnv } = require('node:util')

/** As `parse.ts` of the configuration spells false. Any other word is true, or a fault that the runtime reports. */
const FALSE = ['false', '0', 'no', 'off']

/** True when `GUARDIAN` is false: somebody else starts the runtime again. */
exports.isGuardianOff = function isGuardianOff() {
  return FALSE.includes((given('GUARDIAN') ?? 'true').toLowerCase())
}

/** `PROCESSES`. One where it is no such number: that one reports the fault. */
exports.processCount = function processCount() {
  const text = given('PROCESSES') ?? '1'
  return /^[1-9]\d?$/.test(text) ? Number(text) : 1
}

/** `NODE_ENV`: what is started to stay is in production, unless somebody says otherwise. */
exports.mode = function mode() {
  return given('NODE_ENV') ?? 'production'
}

/** `NODE_OPTIONS`, also of `.env`: Node reads that of the environment alone, when it starts. */
exports.nodeOptions = function nodeOptions() {
  return given('NODE_OPTIONS') ?? ''
}

/** True when npm has started this process, for `npm start` or `npm run dev`. */
exports.isStartedByNpm = function isStartedByNpm() {
  const { npm_command, npm_lifecycle_event } = process.env
  return npm_command !== undefined && ['start', 'dev'].includes(npm_lifecycle_event) && process.platform !== 'win32'
}

/** The environment wins over `.env`, as for every variable, and empty counts as unset. */
function given(name) {
  return process.env[name]?.trim() || dotEnv()[name]?.trim() || undefined
}

function dotEnv() {
  try {
    return parseEnv(readFileSync('.env', 'utf8').replace(/^\ufeff/, ''))
  } catch {
    // None is there, or none that can be read: the runtime reports that.
    return {}
  }
}
