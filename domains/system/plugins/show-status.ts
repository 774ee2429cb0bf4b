import { plugin, type SystemDump } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'The health of tools and plugins',
  description: 'Each with its state, and the error that it booted with.',
}

/** The health of every tool and plugin. */
export default plugin(
  ({ http, registry }) => {
    http.get('/system/status', options, (): SystemDump => registry.getSystemDump())
  },
  { thread: 'primary' },
)
