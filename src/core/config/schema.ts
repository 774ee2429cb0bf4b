import { AUTH_VARIABLES } from './variables/auth.ts'
import { DATABASE_VARIABLES } from './variables/database.ts'
import { EVENT_VARIABLES } from './variables/events.ts'
import { HTTP_VARIABLES } from './variables/http.ts'
import { IDENTITY_VARIABLES } from './variables/identity.ts'
import { OBSERVABILITY_VARIABLES } from './variables/observability.ts'
import { PROCESS_VARIABLES } from './variables/process.ts'
import type { VariableRow } from './variables/row.ts'
import { STORE_VARIABLES } from './variables/store.ts'

/**
 * Every environment variable of the runtime. The key of its setting is its name in camelCase: `HTTP_PORT` → `httpPort`.
 * Empty counts as unset.
 */
export const VARIABLES = {
  ...HTTP_VARIABLES,
  ...PROCESS_VARIABLES,
  ...DATABASE_VARIABLES,
  ...STORE_VARIABLES,
  ...EVENT_VARIABLES,
  ...AUTH_VARIABLES,
  ...OBSERVABILITY_VARIABLES,
  ...IDENTITY_VARIABLES,
} as const satisfies Record<string, VariableRow>

/** Variables that only these tools read. */
const OF_TOOLS: readonly (readonly [tools: readonly string[], variables: object])[] = [
  // Whether the secret has to be set depends on the address.
  [['http', 'auth'], HTTP_VARIABLES],
  [['auth'], AUTH_VARIABLES],
  [['db'], DATABASE_VARIABLES],
  [['state', 'event_bus'], STORE_VARIABLES],
]

/** The variables that the tool does not read. */
export function variablesOfOtherTools(tool: string): string[] {
  return OF_TOOLS.flatMap(([tools, variables]) => (tools.includes(tool) ? [] : Object.keys(variables)))
}

export type VariableName = keyof typeof VARIABLES

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Lowercase<Head>}${Capitalize<CamelCase<Tail>>}`
  : Lowercase<Name>

type OrUnset<Row, Value> = Row extends { default: undefined } ? Value | undefined : Value

type ValueOf<Row> = Row extends { type: 'integer' | 'number' }
  ? OrUnset<Row, number>
  : Row extends { type: 'boolean' }
    ? boolean
    : Row extends { choices: readonly (infer Choice)[] }
      ? Choice
      : Row extends { type: 'folders' | 'origins' | 'hosts' | 'names' | 'networks' }
        ? readonly string[]
        : OrUnset<Row, string>

/** The parsed environment, deep-frozen; a plain object that can be posted to another thread. */
export type Settings = {
  readonly [Name in VariableName as CamelCase<Name>]: ValueOf<(typeof VARIABLES)[Name]>
}

/** `HTTP_PORT` → `httpPort`. */
export function settingKey(name: string): string {
  return name.toLowerCase().replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}
