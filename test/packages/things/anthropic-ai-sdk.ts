import Anthropic from '@anthropic-ai/sdk'

export default (get: (name: string) => string) => {
  // The key is in `process.env`.
  const anthropic = new Anthropic({ baseURL: `${get('TRIAL_HTTP')}/anthropic` })
  return async () => {
    const messages = [{ role: 'user' as const, content: 'What is a heddle?' }]
    return (await anthropic.messages.create({ model: 'claude', max_tokens: 100, messages })).content
  }
}
