/** The user of a tool: a plugin, or the runtime itself under the tool's own name. */
export interface Owner {
  /** `<domain>.<ClassName>` for a plugin. It is the `emitter`, `subscriber` and `identity` of everything that the plugin does. */
  readonly name: string
  /** The plugin's instance, which is `this` in its handlers; undefined until it is constructed. */
  instance: object | undefined
  /** Set for `domain.ts` and `app.ts`: they register hooks alone. */
  readonly hooksOf?: 'domain' | 'application'
}
