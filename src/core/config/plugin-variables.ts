// A plugin's own variables: those that a thread has, and how a number and a boolean are read, in them and in settings.

type Variables = (name: string) => string | undefined

let ofProcess: Variables = () => undefined
let adopted: Variables | null = null
let isSecret = (_name: string): boolean => false

/** True for a variable that is set, and a secret of the runtime: `readVariable` gives it to nobody. */
export const isRuntimeSecret = (name: string): boolean => isSecret(name)

/** A plugin's own variable; undefined when it is unset, and for the runtime's secrets. */
export function readVariable(name: string): string | undefined {
  return (adopted ?? ofProcess)(name)
}

/**
 * From now on `readVariable` reads these. Called once, in a lane, with what the primary has handed it: its `process.env` has only what its libraries
 * need, and the table of all variables, which knows the secrets, is not loaded there.
 */
export function adoptVariables(given: Readonly<Record<string, string>>, secretNames: readonly string[]): void {
  adopted = (name) => given[name]
  isSecret = (name) => secretNames.includes(name)
}

/** What `readVariable` reads in a thread that has adopted no others. */
export function serveVariables(variables: Variables, isSecretName: (name: string) => boolean): void {
  ofProcess = variables
  isSecret = isSecretName
}

/** A decimal number; undefined for anything else, hexadecimals and infinities included. */
export function parseNumber(text: string): number | undefined {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(value) ? value : undefined
}

/** true, 1, yes and on, or their opposites, in any case; undefined for anything else. */
export function parseBoolean(text: string): boolean | undefined {
  if (/^(?:true|1|yes|on)$/i.test(text)) return true
  return /^(?:false|0|no|off)$/i.test(text) ? false : undefined
}
