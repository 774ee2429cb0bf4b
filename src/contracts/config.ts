// The tool `config`: a plugin's own variables.

export interface VariableOptions {
  /** Used when the variable is unset. Without a default the variable is required. */
  default?: string | number | boolean
  /** How the text is read. Default: the type of `default`, else `string`. */
  type?: 'string' | 'number' | 'boolean'
}

/** A plugin's own environment variables. */
export interface Config {
  /**
   * The parsed value.
   * @throws CONFIG_MISSING when it is unset and has no default, CONFIG_INVALID when it cannot be parsed.
   * When a constructor or `onBoot` throws it, the plugin is `DEAD` with that message.
   */
  get(name: string, options: VariableOptions & ({ type: 'number' } | { default: number })): number
  get(name: string, options: VariableOptions & ({ type: 'boolean' } | { default: boolean })): boolean
  get(name: string, options?: VariableOptions): string
}
