"""The official OpenAI client: what it gets where all is well."""

import asyncio
import json
import unittest

import openai
import pydantic

from world import KEY, PATIENCE, end, world

ASK = [{"role": "user", "content": "Say something."}]
TEXT = "".join(f"w{index} " for index in range(12))
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA, "strict": True}}


class Forecast(pydantic.BaseModel):
    city: str
    days: int
    warm: bool


def tearDownModule():
    end()


def client(**more):
    return openai.OpenAI(base_url=world().v1, api_key=KEY, timeout=PATIENCE, max_retries=0, **more)


class Sync(unittest.TestCase):
    def setUp(self):
        self.client = client()
        self.addCleanup(self.client.close)

    def test_chat(self):
        done = self.client.chat.completions.create(model="chat", messages=ASK)
        self.assertEqual(done.choices[0].message.content, TEXT)
        self.assertEqual(done.choices[0].finish_reason, "stop")
        self.assertEqual(done.usage.completion_tokens, 12)
        self.assertTrue(done._request_id)

    def test_chat_cut_short_by_its_bound(self):
        done = self.client.chat.completions.create(model="chat", messages=ASK, max_completion_tokens=3)
        self.assertEqual((done.choices[0].message.content, done.choices[0].finish_reason), ("w0 w1 w2 ", "length"))

    def test_chat_streamed_shows_no_usage_unless_asked(self):
        chunks = list(self.client.chat.completions.create(model="chat", messages=ASK, stream=True))
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks), TEXT)
        self.assertTrue(all(chunk.usage is None for chunk in chunks))

    def test_chat_streamed_with_usage(self):
        options = {"include_usage": True}
        asked = self.client.chat.completions.create(model="chat", messages=ASK, stream=True, stream_options=options)
        chunks = list(asked)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, 12)

    def test_stream_helper(self):
        with self.client.chat.completions.stream(model="chat", messages=ASK) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            done = stream.get_final_completion()
        self.assertEqual("".join(deltas), TEXT)
        self.assertEqual(done.choices[0].message.content, TEXT)

    def test_tools_and_their_results(self):
        done = self.client.chat.completions.create(model="chat", messages=ASK, tools=[TOOL])
        message = done.choices[0].message
        self.assertEqual(done.choices[0].finish_reason, "tool_calls")
        call = message.tool_calls[0]
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "w0", "days": 1}))
        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        done = self.client.chat.completions.create(model="chat", messages=[*ASK, message, result], tools=[TOOL])
        self.assertEqual(done.choices[0].message.content, TEXT)

    def test_tools_streamed(self):
        with self.client.chat.completions.stream(model="chat", messages=ASK, tools=[TOOL]) as stream:
            done = stream.get_final_completion()
        call = done.choices[0].message.tool_calls[0]
        self.assertEqual((call.function.name, json.loads(call.function.arguments)), ("weather", {"city": "w0", "days": 1}))

    def test_structured_output(self):
        done = self.client.chat.completions.parse(model="chat", messages=ASK, response_format=Forecast)
        self.assertEqual(done.choices[0].message.parsed, Forecast(city="w0", days=1, warm=True))
        with self.client.chat.completions.stream(model="chat", messages=ASK, response_format=Forecast) as stream:
            done = stream.get_final_completion()
        self.assertEqual(done.choices[0].message.parsed, Forecast(city="w0", days=1, warm=True))

    def test_responses(self):
        done = self.client.responses.create(model="chat", input="Say something.")
        self.assertEqual((done.output_text, done.status, done.usage.output_tokens), (TEXT, "completed", 12))

    def test_responses_streamed(self):
        events = list(self.client.responses.create(model="chat", input="Say something.", stream=True))
        kinds = [event.type for event in events]
        self.assertEqual((kinds[0], kinds[-1]), ("response.created", "response.completed"))
        self.assertEqual("".join(e.delta for e in events if e.type == "response.output_text.delta"), TEXT)
        numbers = [event.sequence_number for event in events]
        self.assertEqual(numbers, sorted(set(numbers)))
        with self.client.responses.stream(model="chat", input="Say something.") as stream:
            stream.until_done()
            self.assertEqual(stream.get_final_response().output_text, TEXT)

    def test_responses_with_tools_and_schema(self):
        tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}
        call = self.client.responses.create(model="chat", input="Weather?", tools=[tool]).output[0]
        self.assertEqual((call.type, call.name, json.loads(call.arguments)), ("function_call", "weather", {"city": "w0", "days": 1}))
        with self.client.responses.stream(model="chat", input="Weather?", tools=[tool]) as stream:
            stream.until_done()
            call = stream.get_final_response().output[0]
        self.assertEqual(json.loads(call.arguments), {"city": "w0", "days": 1})
        done = self.client.responses.parse(model="chat", input="Weather?", text_format=Forecast)
        self.assertEqual(done.output_parsed, Forecast(city="w0", days=1, warm=True))

    def test_embeddings(self):
        done = self.client.embeddings.create(model="chat", input=["one", "two"])
        self.assertEqual([list(item.embedding) for item in done.data], [[0.25, -0.5, 0.125]] * 2)

    def test_completions(self):
        done = self.client.completions.create(model="chat", prompt="Say something.")
        self.assertEqual(done.choices[0].text, TEXT)

    def test_models(self):
        names = [model.id for model in self.client.models.list()]
        self.assertIn("chat", names)
        self.assertNotIn("model-a", names)

    def test_another_target_answers_for_one_that_fails(self):
        raw = self.client.chat.completions.with_raw_response.create(model="backed", messages=ASK)
        self.assertEqual((raw.parse().model, raw.retries_taken), ("model-b", 0))

    def test_stream_given_up_reaches_the_provider(self):
        stream = self.client.chat.completions.create(
            model="chat", messages=ASK, stream=True, extra_headers={"x-fault": "stall:3"}
        )
        for chunk in stream:
            if chunk.choices[0].delta.content == "w2 ":
                break
        stream.close()
        seen = world().seen(lambda seen: seen["ended"] != "complete" and seen["tokens"] == 3)
        self.assertEqual(seen["ended"], "disconnected")


class Async(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.client = openai.AsyncOpenAI(base_url=world().v1, api_key=KEY, timeout=PATIENCE, max_retries=0)

    async def asyncTearDown(self):
        await self.client.close()

    async def streamed(self, **more):
        stream = await self.client.chat.completions.create(model="chat", messages=ASK, stream=True, **more)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    async def test_chat(self):
        done = await self.client.chat.completions.create(model="chat", messages=ASK)
        self.assertEqual(done.choices[0].message.content, TEXT)
        self.assertEqual(await self.streamed(), TEXT)

    async def test_tools_structured_output_responses_and_embeddings(self):
        done = await self.client.chat.completions.create(model="chat", messages=ASK, tools=[TOOL])
        self.assertEqual(done.choices[0].message.tool_calls[0].function.name, "weather")
        done = await self.client.chat.completions.parse(model="chat", messages=ASK, response_format=Forecast)
        self.assertEqual(done.choices[0].message.parsed.city, "w0")
        async with self.client.responses.stream(model="chat", input="Say something.") as stream:
            self.assertEqual((await stream.get_final_response()).output_text, TEXT)
        done = await self.client.embeddings.create(model="chat", input="one")
        self.assertEqual(list(done.data[0].embedding), [0.25, -0.5, 0.125])

    async def test_fifty_at_once(self):
        texts = await asyncio.gather(*(self.streamed(max_completion_tokens=1 + number % 12) for number in range(50)))
        for number, text in enumerate(texts):
            self.assertEqual(len(text.split()), 1 + number % 12)

    async def test_task_cancelled_amid_a_stream_reaches_the_provider(self):
        reached = asyncio.Event()

        async def read():
            stream = await self.client.chat.completions.create(
                model="chat", messages=ASK, stream=True, extra_headers={"x-fault": "stall:5"}
            )
            async for chunk in stream:
                if chunk.choices[0].delta.content == "w4 ":
                    reached.set()

        task = asyncio.create_task(read())
        await asyncio.wait_for(reached.wait(), PATIENCE)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        seen = await asyncio.to_thread(world().seen, lambda seen: seen["tokens"] == 5 and seen["ended"] != "complete")
        self.assertEqual(seen["ended"], "disconnected")
        # What is left of it takes nothing from the next call.
        self.assertEqual(await self.streamed(), TEXT)


if __name__ == "__main__":
    unittest.main()
