type Variables = (name: string) => string | undefined

let ofProcess: Variables = () => undefined
let adopted: Variables | null = null

/** A plugin's own variable; undefined when it is unset, and for the runtime's secrets. */
export function readVariable(name: string): string | undefined {
  return (adopted ?? ofProcess)(name)
}

/**
 * From now on `readVariable` reads these. Called once, in a lane, with what the primary has handed it: its `process.env` has only what its libraries
 * need, and the table of all variables, which knows the secrets, is not loaded there.
 */
export function adoptVariables(given: Readonly<Record<string, string>>): void {
  adopted = (name) => given[name]
}

/** What `readVariable` reads in a thread that has adopted no others. */
export function serveVariables(variables: Variables): void {
  ofProcess = variables
}
