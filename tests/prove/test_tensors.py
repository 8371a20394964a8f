import torch

from bedstone.prove.tensors import as_bytes


def test_one_element_of_a_column_is_bytes_too():
    column = torch.tensor([[7, 1]], dtype=torch.int32)[:, 0]
    assert column.stride() == (2,)
    assert as_bytes(column).tolist() == [7, 0, 0, 0]


def test_bytes_share_the_memory_of_a_tensor():
    matrix = torch.zeros(2, 3)
    as_bytes(matrix).fill_(0xFF)
    assert matrix.isnan().all()
