from textual.widgets import Static


class Inspector(Static):
    def __init__(self, model): super().__init__("pane"); self.m=model
    def inspect(self, task): self.update(repr(task.name if task else ""), )
    def show(self): pass
