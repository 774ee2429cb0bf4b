// Node's own options in the environment.

/** What `NODE_OPTIONS` has loaded before a program: agents, as a rule. */
const PRELOADED = /(^|\s)(?:--(?:import|require)|-r)[\s=]+(?:"(?:\\.|[^"])*"|\S+)/g

/** The environment of a thread or process that runs no code of plugins: no agent watches it. */
export function environmentWithoutAgents(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS = '', ...rest } = process.env
  return { ...rest, NODE_OPTIONS: NODE_OPTIONS.replace(PRELOADED, '$1') }
}
