/** Whoever uses a tool: a plugin, or the runtime itself under the tool's own name. */
export interface Owner {
  /** `<domain>.<ClassName>` of a plugin: the `emitter`, `subscriber` and `identity` of all that it does. */
  readonly name: string
  /** The plugin's instance once it is constructed: what `this` is in its handlers. */
  instance: object | undefined
}
