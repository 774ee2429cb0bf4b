import { causalForest, plugin, type TreeNode } from '#heddle'

const options = {
  tags: ['system'],
  summary: 'The last 500 events by causality',
  description: 'Each event below the one that caused it.',
}

/** The last 500 events by causality: each below the event whose subscriber published it. */
export default plugin(
  ({ http, event_bus }) => {
    http.get(
      '/system/traces/tree',
      options,
      async (): Promise<TreeNode[]> => causalForest(await event_bus.getTraceHistory()),
    )
  },
  { thread: 'primary' },
)
