import OpenAI from 'openai'

export default (get: (name: string) => string) => {
  // The key is in `process.env`.
  const openai = new OpenAI({ baseURL: `${get('TRIAL_HTTP')}/openai` })
  return async () => {
    const messages = [{ role: 'user' as const, content: 'What is a heddle?' }]
    return (await openai.chat.completions.create({ model: 'gpt-5', messages })).choices[0]?.message.content
  }
}
