interface RowOf<Type extends string, Default> {
  type: Type
  /** Used when the variable is unset or empty. A function gets the settings of the rows above its own, and whether `npm run dev` runs. */
  default: Default | ((above: Record<string, unknown>, isDevelopment: boolean) => Default)
  unit?: string
  /** What the variable changes, in one sentence. */
  effect: string
  /** Never shown in messages and never handed to plugins. */
  secret?: true
}
type Range = { min: number; max: number }

/** One variable. The defaults of `folder`, `folders` and `file` are resolved like given values. */
export type VariableRow =
  | (RowOf<'integer' | 'number', number | undefined> & Range)
  | RowOf<'boolean', boolean>
  | (RowOf<'choice', string> & { choices: readonly string[]; aliases?: Readonly<Record<string, string>> })
  | (RowOf<'text', string | undefined> & { pattern?: RegExp; wanted?: string })
  | RowOf<'origins' | 'hosts' | 'names' | 'networks', readonly string[]>
  | RowOf<'folder' | 'folders' | 'file', string>

export const DAY_MS = 86_400_000
export const PORT_RANGE = { min: 1, max: 65_535 } as const
export const NO_BLANKS = { pattern: /^\S+$/, wanted: 'a string without blanks' } as const
export const TLS_MODES = ['off', 'require', 'verify'] as const
